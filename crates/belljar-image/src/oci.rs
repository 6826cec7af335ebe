//! Images that others made: OCI layouts (a directory or a tar of one) and the output of `docker save`.
//!
//! Every document and layer is checked against the digest that names it, and every layer's plain tar against its `diff_id`. What an image
//! says about environment, user and working directory becomes the template's defaults; its entrypoint and command do not, since a sandbox
//! is a computer and not one program.

mod assemble;
mod error;
mod model;
mod parts;

use std::fs::File;
use std::path::Path;

use belljar_types::{Template, TemplateName};

pub(crate) use assemble::Import;
pub use error::OciError;
pub(crate) use model::{BlobDigest, Descriptor, Index, IndexOrManifest, Manifest, Platform};
pub(crate) use parts::{DOCUMENT_MAX, Parts, document, parse};

use self::assemble::LayerPart;
use self::model::{ImageConfig, SavedImage};
use self::parts::{DirectoryParts, TarParts};
use crate::archive::{ArchiveLimits, Decompressed};
use crate::progress::Stoppable;
use crate::store::Staged;
use crate::{ArchiveError, ImageError, LayerStore, ProgressSink, StoreError};

const INDEX: &str = "index.json";
const SAVED: &str = "manifest.json";
const REF_NAME: &str = "org.opencontainers.image.ref.name";
const INDEX_DEPTH_MAX: usize = 3;

impl LayerStore {
    /// Takes an image from an OCI layout: a directory, or a tar of one. `tag` chooses among several images.
    pub fn import_oci_layout(
        &self,
        name: TemplateName,
        layout: &Path,
        tag: Option<&str>,
        progress: &dyn ProgressSink,
    ) -> Result<Template, ImageError> {
        if layout.is_dir() {
            let parts = DirectoryParts::open(layout)?;
            return self.import_layout(name, &parts, tag, progress);
        }
        let (parts, _spool) = self.open_tar(layout, progress)?;
        self.import_layout(name, &parts, tag, progress)
    }

    /// Takes an image from the output of `docker save`. `tag` chooses among several images, as `name:tag`.
    pub fn import_docker_archive(
        &self,
        name: TemplateName,
        archive: &Path,
        tag: Option<&str>,
        progress: &dyn ProgressSink,
    ) -> Result<Template, ImageError> {
        let (parts, _spool) = self.open_tar(archive, progress)?;
        if !parts.has(SAVED) && parts.has(INDEX) {
            return self.import_layout(name, &parts, tag, progress);
        }
        let images: Vec<SavedImage> = parse(SAVED, &document(&parts, SAVED, None)?)?;
        let image = choose_saved(&images, tag)?;
        // The configuration is named by its digest, in the old form and in the new one.
        let file = image.config.rsplit('/').next().unwrap_or_default();
        let digest: BlobDigest = format!("sha256:{}", file.strip_suffix(".json").unwrap_or(file)).parse()?;
        let config: ImageConfig = parse(&image.config, &document(&parts, &image.config, Some(&digest))?)?;
        let layers: Vec<LayerPart> = image.layers.iter().map(|name| LayerPart { name: name.clone(), blob: None }).collect();
        let import = Import { store: &self.holding(), parts: &parts, limits: ArchiveLimits::default(), progress };
        import.image(name, &config, &layers, format!("docker archive {digest}"))
    }

    fn import_layout(
        &self,
        name: TemplateName,
        parts: &dyn Parts,
        tag: Option<&str>,
        progress: &dyn ProgressSink,
    ) -> Result<Template, ImageError> {
        let index: Index = parse(INDEX, &document(parts, INDEX, None)?)?;
        let mut chosen = choose(&index, tag)?.clone();
        for _ in 0..INDEX_DEPTH_MAX {
            let digest: BlobDigest = chosen.digest.parse()?;
            let bytes = document(parts, &digest.path(), Some(&digest))?;
            match parse(&digest.path(), &bytes)? {
                IndexOrManifest::Manifest(manifest) => {
                    let import = Import { store: &self.holding(), parts, limits: ArchiveLimits::default(), progress };
                    return import.manifest(name, &manifest, format!("oci layout {digest}"));
                }
                IndexOrManifest::Index(index) => chosen = choose(&index, None)?.clone(),
            }
        }
        Err(OciError::Nesting(INDEX_DEPTH_MAX).into())
    }

    /// Opens a tar of parts; a compressed one is unpacked to a file of its own first, since its parts are needed out of order.
    fn open_tar(&self, path: &Path, progress: &dyn ProgressSink) -> Result<(TarParts, Option<Staged>), ImageError> {
        let failed = |source| OciError::Open { path: path.to_owned(), source };
        let limits = ArchiveLimits::default();
        let file = File::open(path).map_err(failed)?;
        let mut stream = Decompressed::new(Stoppable::new(&file, progress), limits).map_err(failed)?;
        if !stream.is_compressed() {
            drop(stream);
            return Ok((TarParts::index(file, &limits)?, None));
        }
        let staging = self.staging_directory();
        let staged = |source| StoreError::Stage { path: staging.clone(), source };
        let spool = Staged::new(&staging).map_err(staged)?;
        let mut plain = File::options().read(true).write(true).create_new(true).open(spool.path().join("plain")).map_err(staged)?;
        std::io::copy(&mut stream, &mut plain).map_err(ArchiveError::from_read)?;
        Ok((TarParts::index(plain, &limits)?, Some(spool)))
    }
}

/// The image for this machine: by tag if one is given, then by platform.
pub(crate) fn choose<'i>(index: &'i Index, tag: Option<&str>) -> Result<&'i Descriptor, OciError> {
    let host = Platform::host();
    let tagged = |descriptor: &&Descriptor| tag.is_none_or(|tag| descriptor.annotations.get(REF_NAME).is_some_and(|name| name == tag));
    let fits = |descriptor: &&Descriptor| descriptor.platform.as_ref().is_none_or(|platform| *platform == host);
    let fitting: Vec<&Descriptor> = index.manifests.iter().filter(tagged).filter(fits).collect();
    match fitting.as_slice() {
        [one] => Ok(one),
        [] => Err(OciError::Platform { wanted: wanted(&host, tag), found: list(&index.manifests) }),
        // Attestations and the like have a platform of their own; an exact match is the image.
        several => match several.iter().filter(|descriptor| descriptor.platform.as_ref() == Some(&host)).collect::<Vec<_>>().as_slice() {
            [one] => Ok(one),
            _ => Err(OciError::Ambiguous { found: list(&index.manifests) }),
        },
    }
}

fn wanted(host: &Platform, tag: Option<&str>) -> String {
    tag.map_or_else(|| host.to_string(), |tag| format!("{host} under the tag {}", belljar_types::escape_untrusted(tag.as_bytes())))
}

fn list(descriptors: &[Descriptor]) -> String {
    let name = |descriptor: &Descriptor| {
        let platform = descriptor.platform.as_ref().map(|platform| format!(" ({platform})")).unwrap_or_default();
        format!("{}{platform}", descriptor.annotations.get(REF_NAME).map_or("an image without a tag", String::as_str))
    };
    descriptors.iter().take(20).map(name).collect::<Vec<_>>().join(", ")
}

fn choose_saved<'i>(images: &'i [SavedImage], tag: Option<&str>) -> Result<&'i SavedImage, OciError> {
    let tags = |image: &'i SavedImage| image.repo_tags.as_deref().unwrap_or_default();
    let fitting: Vec<&SavedImage> = images.iter().filter(|image| tag.is_none_or(|tag| tags(image).iter().any(|t| t == tag))).collect();
    match fitting.as_slice() {
        [one] => Ok(one),
        _ => {
            let found = images.iter().flat_map(tags).take(20).cloned().collect::<Vec<_>>().join(", ");
            Err(OciError::Ambiguous { found })
        }
    }
}
