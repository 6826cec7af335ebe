//! Which layer a step of a build made, and how builds stand: one small file each.
//!
//! ```text
//!   steps/<key>          the digest of the layer
//!   steps/builds/<id>    a build's record
//! ```
//! A step whose layer was swept is as good as forgotten, and its file goes when somebody asks for it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use belljar_ports::StepKey;
use belljar_types::{BuildId, BuildRecord, LayerDigest, hex};

use super::{LayerStore, StoreError};
use crate::ImageError;

/// What the host writes into every new sandbox, which hides whatever a layer has there.
const OF_THE_HOST: &[&[u8]] = &[b".belljar", b"etc/hosts", b"etc/hostname", b"etc/resolv.conf"];
/// How long a build that ended is remembered.
const REMEMBERED: Duration = Duration::from_secs(7 * 86_400);

impl LayerStore {
    /// The layer that this step made, if it is still there.
    pub(crate) fn step(&self, key: &StepKey) -> Result<Option<LayerDigest>, StoreError> {
        let file = self.step_file(key);
        let digest = match fs::read_to_string(&file) {
            Ok(text) => text.trim().parse::<LayerDigest>().ok(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(StoreError::Step { path: file, source }),
        };
        match digest {
            Some(digest) if self.layer(&digest)?.is_some() => Ok(Some(digest)),
            _ => {
                // Whoever makes it again writes it again.
                let _ = fs::remove_file(&file);
                Ok(None)
            }
        }
    }

    /// Makes a layer of what a sandbox wrote, and remembers it by the step.
    pub(crate) fn keep_step(&self, key: &StepKey, written: &Path, origin: &str) -> Result<LayerDigest, ImageError> {
        let layer = self.import_tree_without(written, origin, OF_THE_HOST)?;
        let file = self.step_file(key);
        let kept = self.replace_file(&file, layer.digest.as_str().as_bytes());
        kept.map_err(|source| StoreError::Step { path: file, source })?;
        Ok(layer.digest)
    }

    /// Writes a build's record over the one before.
    pub(crate) fn put_build(&self, build: &BuildRecord) -> Result<(), StoreError> {
        let file = self.build_file(&build.id);
        let write = || {
            fs::create_dir_all(self.builds_directory())?;
            self.replace_file(&file, &serde_json::to_vec(build)?)
        };
        write().map_err(|source| StoreError::Step { path: file.clone(), source })
    }

    /// A build's record, if there is one.
    pub(crate) fn build(&self, id: &BuildId) -> Result<Option<BuildRecord>, StoreError> {
        let file = self.build_file(id);
        match fs::read(&file) {
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|error| StoreError::Step { path: file, source: error.into() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StoreError::Step { path: file, source }),
        }
    }

    /// All builds; those that were last written long ago, or that cannot be read, are forgotten.
    pub(crate) fn builds(&self) -> Result<Vec<BuildRecord>, StoreError> {
        let directory = self.builds_directory();
        let failed = |source| StoreError::List { path: directory.clone(), source };
        let entries = match fs::read_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(failed)?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let age = entry.metadata().and_then(|metadata| metadata.modified()).map_err(failed)?;
            let old = SystemTime::now().duration_since(age).is_ok_and(|age| age > REMEMBERED);
            let id = entry.file_name().to_str().and_then(|name| name.parse::<BuildId>().ok());
            match id.filter(|_| !old).map(|id| self.build(&id)) {
                Some(Ok(Some(build))) => found.push(build),
                _ => fs::remove_file(entry.path()).map_err(failed)?,
            }
        }
        Ok(found)
    }

    fn step_file(&self, key: &StepKey) -> PathBuf {
        self.steps_directory().join(hex(&key.0))
    }

    fn build_file(&self, id: &BuildId) -> PathBuf {
        self.builds_directory().join(id.as_str())
    }

    fn builds_directory(&self) -> PathBuf {
        self.steps_directory().join("builds")
    }

    pub(super) fn steps_directory(&self) -> PathBuf {
        self.pool().join("steps")
    }
}
