//! Images from a registry, by the OCI distribution protocol.
//!
//! Nothing the registry says is believed: every manifest and blob is hashed as it arrives and compared with the digest that asked for it.
//! Only a tag is taken on trust, because it is a name and not a promise; write `@sha256:…` to leave nothing to trust.

mod auth;
mod client;
mod error;
mod reference;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};

use belljar_types::{Secret, Template, TemplateName};

pub use error::RegistryError;
pub use reference::Reference;

use self::client::{Client, pause};
use crate::archive::ArchiveLimits;
use crate::digest::HashingReader;
use crate::oci::{BlobDigest, DOCUMENT_MAX, Import, IndexOrManifest, Manifest, OciError, Parts, choose, parse};
use crate::progress::Stoppable;
use crate::store::Staged;
use crate::{ImageError, LayerStore, Progress, ProgressSink, StoreError};

const MANIFESTS: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json";
const DOWNLOADS: u32 = 4;

/// Who pulls, and over what.
#[derive(Debug, Clone, Default)]
pub struct PullOptions {
    /// For a registry that does not give to everybody.
    pub credentials: Option<RegistryCredentials>,
    /// Speak plain HTTP. A registry on this machine's loopback is always spoken to so.
    pub insecure: bool,
}

/// A name and a password, or what a registry takes as one.
#[derive(Debug, Clone)]
pub struct RegistryCredentials {
    /// The name.
    pub username: String,
    /// The password or personal token.
    pub password: Secret<String>,
}

impl LayerStore {
    /// Takes an image from a registry.
    pub fn pull(
        &self,
        name: TemplateName,
        reference: &Reference,
        options: &PullOptions,
        progress: &dyn ProgressSink,
    ) -> Result<Template, ImageError> {
        let client = Client::new(reference, options);
        progress.report(Progress::Step(&format!("asking for {reference}")));
        let (manifest, digest) = fetch_manifest(&client)?;
        let sizes = manifest.layers.iter().chain([&manifest.config]);
        let sizes = sizes.map(|part| Ok((part.digest.parse::<BlobDigest>()?.path(), part.size))).collect::<Result<_, OciError>>()?;
        let staging = self.staging_directory();
        let spool = Staged::new(&staging).map_err(|source| StoreError::Stage { path: staging, source })?;
        let parts = RegistryParts { client, sizes, spool, progress };
        let import = Import { store: &self.holding(), parts: &parts, limits: ArchiveLimits::default(), progress };
        import.manifest(name, &manifest, format!("oci {reference} {digest}"))
    }
}

/// The manifest for this machine, through at most one index, and its digest.
fn fetch_manifest(client: &Client<'_>) -> Result<(Manifest, BlobDigest), ImageError> {
    let (bytes, digest) = fetch_document(client, &client.reference.version(), client.reference.digest.as_ref())?;
    match parse("manifest", &bytes)? {
        IndexOrManifest::Manifest(manifest) => Ok((manifest, digest)),
        IndexOrManifest::Index(index) => {
            let expected: BlobDigest = choose(&index, None)?.digest.parse()?;
            let (bytes, digest) = fetch_document(client, &expected.to_string(), Some(&expected))?;
            Ok((parse("manifest", &bytes)?, digest))
        }
    }
}

fn fetch_document(client: &Client<'_>, version: &str, expected: Option<&BlobDigest>) -> Result<(Vec<u8>, BlobDigest), ImageError> {
    let what = format!("manifest {version} of {}", client.reference.repository);
    let response = client.get(&format!("manifests/{version}"), MANIFESTS, &what)?;
    let mut reader = HashingReader::new(response.into_body().into_reader().take(DOCUMENT_MAX + 1));
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).map_err(|error| client.transport(&what, error.into()))?;
    let (hex, size) = reader.finish();
    if size > DOCUMENT_MAX {
        return Err(OciError::TooLarge { part: what, limit: DOCUMENT_MAX }.into());
    }
    let digest = BlobDigest::of_hex(&hex);
    match expected {
        Some(expected) if *expected != digest => {
            let (expected, found) = (expected.to_string(), digest.to_string());
            Err(RegistryError::Content { what, host: client.host(), expected, found }.into())
        }
        _ => Ok((bytes, digest)),
    }
}

/// Blobs, each downloaded whole and verified before any of it is used.
struct RegistryParts<'a> {
    client: Client<'a>,
    sizes: HashMap<String, u64>,
    spool: Staged,
    progress: &'a dyn ProgressSink,
}

impl Parts for RegistryParts<'_> {
    fn open<'a>(&'a self, name: &str) -> Result<Option<Box<dyn Read + 'a>>, ImageError> {
        let Some(size) = self.sizes.get(name) else { return Ok(None) };
        let digest = BlobDigest::of_hex(name.rsplit('/').next().unwrap_or_default());
        let mut attempt = 1;
        loop {
            match self.download(&digest, *size) {
                Ok(file) => return Ok(Some(Box::new(file))),
                // Registries break off long downloads; a wrong digest may be a mangled transfer too.
                Err(RegistryError::Transport { .. } | RegistryError::Content { .. }) if attempt < DOWNLOADS && !self.progress.stopped() => {
                    pause(attempt);
                }
                Err(error) => return Err(error.into()),
            }
            attempt += 1;
        }
    }
}

impl RegistryParts<'_> {
    fn download(&self, digest: &BlobDigest, size: u64) -> Result<File, RegistryError> {
        let what = format!("blob {digest}");
        let spooled = |source| RegistryError::Spool { what: what.clone(), source };
        let response = self.client.get(&format!("blobs/{digest}"), "*/*", &what)?;
        let path = self.spool.path().join("blob");
        let mut file = File::options().read(true).write(true).create(true).truncate(true).open(&path).map_err(spooled)?;
        // Without a name it is gone as soon as it is no longer needed.
        fs::remove_file(&path).map_err(spooled)?;
        let body = response.into_body().into_with_config().limit(u64::MAX).reader();
        let mut reader = HashingReader::new(Stoppable::new(body.take(size.saturating_add(1)), self.progress));
        let mut buffer = vec![0; 64 << 10];
        let mut done = 0;
        loop {
            let read = match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.client.transport(&what, error.into())),
            };
            file.write_all(&buffer[..read]).map_err(spooled)?;
            done += read as u64;
            self.progress.report(Progress::Bytes { done, total: Some(size) });
        }
        let (hex, found_size) = reader.finish();
        let (expected, found) = (format!("{digest} ({size} bytes)"), format!("{} ({found_size} bytes)", BlobDigest::of_hex(&hex)));
        if expected != found {
            return Err(RegistryError::Content { what, host: self.client.host(), expected, found });
        }
        file.rewind().map_err(spooled)?;
        Ok(file)
    }
}
