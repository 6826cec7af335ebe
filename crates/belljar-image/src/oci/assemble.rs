//! From an image's parts to a template: layers in order, each verified before it counts, then what completes them.

use std::io::Read;

use belljar_types::{LayerDigest, Template, TemplateName};

use super::OciError;
use super::model::{BlobDigest, Descriptor, ImageConfig, Manifest, Platform};
use super::parts::{Parts, document, parse};
use crate::archive::{ArchiveForm, ArchiveLimits, Decompressed, unpack_plain};
use crate::digest::HashingReader;
use crate::progress::Stoppable;
use crate::{ArchiveError, ImageError, LayerInfo, LayerStore, Progress, ProgressSink, StoreError};

/// A layer as its image names it.
pub(super) struct LayerPart {
    /// The part's name.
    pub(super) name: String,
    /// What the part, compressed as it is, must be; `docker save` does not say.
    pub(super) blob: Option<(BlobDigest, u64)>,
}

/// What an import works with.
pub(crate) struct Import<'a> {
    pub(crate) store: &'a LayerStore,
    pub(crate) parts: &'a dyn Parts,
    pub(crate) limits: ArchiveLimits,
    pub(crate) progress: &'a dyn ProgressSink,
}

impl Import<'_> {
    /// Makes a template of the image with this manifest.
    pub(crate) fn manifest(&self, name: TemplateName, manifest: &Manifest, origin: String) -> Result<Template, ImageError> {
        let digest: BlobDigest = manifest.config.digest.parse()?;
        let config = document(self.parts, &digest.path(), Some(&digest))?;
        let layers = manifest.layers.iter().map(layer_part).collect::<Result<Vec<_>, _>>()?;
        self.image(name, &parse(&digest.path(), &config)?, &layers, origin)
    }

    /// Makes a template of a configuration and the layers that belong to it.
    pub(super) fn image(
        &self,
        name: TemplateName,
        config: &ImageConfig,
        layers: &[LayerPart],
        origin: String,
    ) -> Result<Template, ImageError> {
        let wanted = Platform::host();
        if config.platform != wanted {
            return Err(OciError::Platform { wanted: wanted.to_string(), found: config.platform.to_string() }.into());
        }
        let diff_ids = &config.rootfs.diff_ids;
        if layers.len() != diff_ids.len() || layers.is_empty() {
            return Err(OciError::LayerCount { layers: layers.len(), diff_ids: diff_ids.len() }.into());
        }
        let mut stack = Vec::new();
        for (number, (layer, diff_id)) in layers.iter().zip(diff_ids).enumerate() {
            self.progress.report(Progress::Step(&format!("layer {} of {}", number + 1, layers.len())));
            stack.push(self.layer(layer, &diff_id.parse()?, &origin)?);
        }
        self.store.complete_template(name, without_repeats(&stack), config.config.clone().unwrap_or_default().wishes(), origin)
    }

    fn layer(&self, layer: &LayerPart, diff_id: &BlobDigest, origin: &str) -> Result<LayerInfo, ImageError> {
        let held =
            |known: &LayerInfo| self.store.hold(&known.digest).map_err(|source| StoreError::Read { digest: known.digest.clone(), source });
        if let Some(known) = self.store.layer_by_diff_id(&diff_id.to_string())?
            && held(&known)?
        {
            self.progress.report(Progress::Reused(&format!("layer {diff_id}")));
            return Ok(known);
        }
        let part = self.parts.open(&layer.name)?.ok_or_else(|| OciError::Missing { part: layer.name.clone() })?;
        self.store.make_layer(origin, |tree, learned| {
            // One byte more than promised is enough to know that the promise was false.
            let promised = layer.blob.as_ref().map_or(self.limits.total_bytes, |(_, size)| *size);
            let mut blob = HashingReader::new(Stoppable::new(part.take(promised.saturating_add(1)), self.progress));
            let plain = Decompressed::new(&mut blob, self.limits).map_err(ArchiveError::Read)?;
            let mut plain = HashingReader::new(plain);
            let unpacked = unpack_plain(&mut plain, ArchiveForm::OciLayer, self.limits, tree);
            let (plain_hex, _) = plain.finish();
            // A changed blob is said to be changed, whatever nonsense it unpacks to, unless reading it all would be the attack.
            if unpacked.as_ref().err().is_none_or(|error| !is_bomb(error)) {
                check_blob(layer, blob)?;
            }
            unpacked?;
            expect(&layer.name, diff_id, &plain_hex)?;
            *learned = Some(diff_id.to_string());
            Ok(())
        })
    }
}

fn layer_part(descriptor: &Descriptor) -> Result<LayerPart, OciError> {
    let kind = descriptor.media_type.as_str();
    let is_tar = kind.is_empty() || kind.contains(".layer.") && !kind.contains("+encrypted") || kind.contains(".rootfs.diff.tar");
    if !is_tar {
        return Err(OciError::LayerType(kind.chars().take(200).collect()));
    }
    let digest: BlobDigest = descriptor.digest.parse()?;
    Ok(LayerPart { name: digest.path(), blob: Some((digest, descriptor.size)) })
}

fn is_bomb(error: &ArchiveError) -> bool {
    use crate::Refusal::{Entries, FileSize, Ratio, TotalSize};
    matches!(error.refusal(), Some(Entries { .. } | FileSize { .. } | Ratio { .. } | TotalSize { .. }))
}

fn check_blob(layer: &LayerPart, mut blob: HashingReader<impl Read>) -> Result<(), OciError> {
    let part = || layer.name.clone();
    std::io::copy(&mut blob, &mut std::io::sink()).map_err(|source| OciError::Read { part: part(), source })?;
    let (hex, found) = blob.finish();
    match &layer.blob {
        Some((_, expected)) if found != *expected => Err(OciError::Size { part: part(), expected: *expected, found }),
        Some((digest, _)) => expect(&layer.name, digest, &hex),
        None => Ok(()),
    }
}

fn expect(part: &str, expected: &BlobDigest, hex: &str) -> Result<(), OciError> {
    if expected.hex() == hex {
        return Ok(());
    }
    let found = BlobDigest::of_hex(hex).to_string();
    Err(OciError::Digest { part: part.to_owned(), expected: expected.to_string(), found })
}

/// Overlayfs takes no directory twice. Of a layer that occurs several times the uppermost decides everything that the others could,
/// and an empty one decides nothing.
fn without_repeats(stack: &[LayerInfo]) -> Vec<LayerDigest> {
    let mut kept: Vec<LayerDigest> = Vec::new();
    for layer in stack.iter().rev().filter(|layer| layer.files > 0) {
        if !kept.contains(&layer.digest) {
            kept.push(layer.digest.clone());
        }
    }
    if kept.is_empty() {
        kept.extend(stack.first().map(|layer| layer.digest.clone()));
    }
    kept.reverse();
    kept
}
