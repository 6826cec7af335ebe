//! The store of layers: directories named by the SHA-256 of their content.
//!
//! ```text
//! pool/staging/<random>/          being made; only its maker's lock keeps it
//!      │ hash, sync, rename
//!      ▼
//! pool/layers/<sha256>/fs/        the tree, in overlay form, never changed again
//! pool/layers/<sha256>/layer.json what it is
//! pool/templates/<name>.json      which layers and defaults make a template of the server
//! pool/templates/<project>/<name>.json                                   of a project
//! ```
//! A layer is there whole or not at all, after a crash at any moment. Two who make the same content at the same time end with one layer.

mod copy;
mod error;
mod hold;
mod parcels;
mod staging;
mod steps;
mod sweep;
mod templates;
mod uploads;

use std::fs;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use belljar_types::{LayerDigest, ProjectId};
use rustix::fs::{CWD, RenameFlags, renameat_with};

pub use error::StoreError;
use hold::Held;
pub use parcels::{pack_tree, unpack_tree};
pub(crate) use staging::{Staged, random_name};
pub(crate) use uploads::Upload;

use crate::archive::tree::Tree;
use crate::archive::{ArchiveForm, ArchiveLimits, unpack};
use crate::canonical::{self, measure};
use crate::{ImageError, digest};

/// The file that says what a layer is; without it a directory is none.
const DESCRIPTION: &str = "layer.json";

/// What is known of a layer.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LayerInfo {
    /// Its name: the SHA-256 of its content in canonical form.
    pub digest: LayerDigest,
    /// Bytes of its files.
    pub size: u64,
    /// Files, directories and links in it.
    pub files: u64,
    /// Directories that it needs and does not describe: layers below say what they are like.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub implied_directories: u64,
    /// Where it came from, for people.
    pub origin: String,
    /// The digest of its plain tar, if it came from an OCI image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff_id: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Layers and templates under one directory. Blocking: call it from a thread that may wait.
#[derive(Debug, Clone)]
pub struct LayerStore {
    pool: PathBuf,
    /// Whose templates are read and written; the server's when unset. Layers are everybody's.
    owner: Option<ProjectId>,
    held: Option<Arc<Held>>,
}

impl LayerStore {
    /// Opens the store, making it if it is not there, and sweeps what a crash left half-made.
    pub fn open(pool: &Path) -> Result<Self, StoreError> {
        let store = Self { pool: pool.to_owned(), owner: None, held: None };
        let prepare = || {
            for directory in [store.layers_directory(), store.staging_directory(), store.templates_directory(), store.steps_directory()] {
                fs::create_dir_all(&directory)?;
                // Layers hold set-user-ID programs and other people's files: nobody but root walks in.
                fs::set_permissions(&directory, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
            }
            staging::sweep(&store.staging_directory())
        };
        prepare().map_err(|source| StoreError::Open { path: pool.to_owned(), source })?;
        Ok(store)
    }

    /// The same layers with the templates of this owner, the server's own when there is none.
    pub fn of(&self, owner: Option<&ProjectId>) -> Self {
        Self { owner: owner.cloned(), ..self.clone() }
    }

    /// The directory of a layer's tree, for an overlay.
    pub fn layer_directory(&self, digest: &LayerDigest) -> PathBuf {
        self.layers_directory().join(digest.as_str()).join("fs")
    }

    /// What is known of a layer, if it is there.
    pub fn layer(&self, digest: &LayerDigest) -> Result<Option<LayerInfo>, StoreError> {
        let failed = |source| StoreError::Read { digest: digest.clone(), source };
        match fs::read(self.layers_directory().join(digest.as_str()).join(DESCRIPTION)) {
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|e| failed(e.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// All layers.
    pub fn layers(&self) -> Result<Vec<LayerInfo>, StoreError> {
        self.layer_names()?.iter().map(|digest| self.layer(digest)).filter_map(Result::transpose).collect()
    }

    fn layer_names(&self) -> Result<Vec<LayerDigest>, StoreError> {
        let directory = self.layers_directory();
        let failed = |source| StoreError::List { path: directory.clone(), source };
        let mut found = Vec::new();
        for entry in fs::read_dir(&directory).map_err(failed)? {
            found.extend(entry.map_err(failed)?.file_name().to_str().and_then(|name| name.parse::<LayerDigest>().ok()));
        }
        Ok(found)
    }

    /// The layer that the tar with this digest became, if it is there.
    pub fn layer_by_diff_id(&self, diff_id: &str) -> Result<Option<LayerInfo>, StoreError> {
        Ok(self.layers()?.into_iter().find(|layer| layer.diff_id.as_deref() == Some(diff_id)))
    }

    /// Takes a tar archive, plain, gzip or zstd, as one layer.
    pub fn import_tar(&self, archive: impl Read, form: ArchiveForm, limits: ArchiveLimits, origin: &str) -> Result<LayerInfo, ImageError> {
        self.make_layer(origin, |tree, _| Ok(unpack(archive, form, limits, tree)?))
    }

    /// Takes a copy of a directory tree, in overlay form, as one layer.
    pub fn import_tree(&self, directory: &Path, origin: &str) -> Result<LayerInfo, ImageError> {
        self.import_tree_without(directory, origin, &[])
    }

    /// The same without these paths, written without a slash at their beginning.
    pub(crate) fn import_tree_without(
        &self,
        directory: &Path,
        origin: &str,
        leave_out: &'static [&'static [u8]],
    ) -> Result<LayerInfo, ImageError> {
        self.make_layer(origin, |tree, _| {
            let failed = |source| StoreError::Copy { path: directory.to_owned(), source };
            let from = Tree::open(directory).map_err(failed)?;
            Ok(copy::copy_tree(from.root(), tree.root(), leave_out).map_err(failed)?)
        })
    }

    /// Lets `fill` fill an empty tree and makes a layer of it; if it fails, nothing remains. It may set the layer's `diff_id`.
    pub(crate) fn make_layer(
        &self,
        origin: &str,
        fill: impl FnOnce(Tree, &mut Option<String>) -> Result<(), ImageError>,
    ) -> Result<LayerInfo, ImageError> {
        let staging = self.staging_directory();
        let failed = |source| StoreError::Stage { path: staging.clone(), source };
        let staged = Staged::new(&staging).map_err(failed)?;
        let root = staged.path().join("fs");
        fs::create_dir(&root).map_err(failed)?;
        fs::set_permissions(&root, std::os::unix::fs::PermissionsExt::from_mode(0o755)).map_err(failed)?;
        let mut diff_id = None;
        fill(Tree::open(&root).map_err(failed)?, &mut diff_id)?;
        let sealed = self.seal(staged, origin, diff_id);
        Ok(sealed.map_err(|source| StoreError::Seal { path: self.layers_directory(), source })?)
    }

    fn seal(&self, staged: Staged, origin: &str, diff_id: Option<String>) -> io::Result<LayerInfo> {
        let tree = Tree::open(&staged.path().join("fs"))?;
        let canonical::Measured { digest, size, files, implied } = measure(tree.root())?;
        let digest = digest::layer_digest(&digest);
        let info = LayerInfo { digest, size, files, implied_directories: implied, origin: origin.to_owned(), diff_id };
        fs::write(staged.path().join(DESCRIPTION), serde_json::to_vec_pretty(&info)?)?;
        // The whole tree must be on disk before its name says so.
        rustix::fs::syncfs(tree.root())?;
        let place = self.layers_directory().join(info.digest.as_str());
        loop {
            match renameat_with(CWD, staged.path(), CWD, &place, RenameFlags::NOREPLACE) {
                Ok(()) => break self.keep_held(staged.moved()),
                // Somebody made the same layer meanwhile, or long ago: that one counts, and ours goes, unless that one was just swept.
                Err(rustix::io::Errno::EXIST | rustix::io::Errno::NOTEMPTY) if self.hold(&info.digest)? => {
                    break self.learn_diff_id(&info)?;
                }
                Err(rustix::io::Errno::EXIST | rustix::io::Errno::NOTEMPTY) => self.clear_remains(&info.digest)?,
                Err(error) => return Err(error.into()),
            }
        }
        fs::File::open(self.layers_directory())?.sync_all()?;
        Ok(info)
    }

    /// A layer that is already there may have come another way: remember the tar it also came from.
    fn learn_diff_id(&self, info: &LayerInfo) -> io::Result<()> {
        let file = self.layers_directory().join(info.digest.as_str()).join(DESCRIPTION);
        let known: LayerInfo = serde_json::from_slice(&fs::read(&file)?)?;
        if info.diff_id.is_some() && known.diff_id.is_none() {
            let better = LayerInfo { diff_id: info.diff_id.clone(), ..known };
            self.replace_file(&file, &serde_json::to_vec_pretty(&better)?)?;
        }
        Ok(())
    }

    /// Hashes a layer again and says whether it still is what its name says.
    pub fn verify(&self, digest: &LayerDigest) -> Result<(), StoreError> {
        let failed = |source| StoreError::Read { digest: digest.clone(), source };
        if self.layer(digest)?.is_none() {
            return Err(StoreError::Missing(digest.clone()));
        }
        let tree = Tree::open(&self.layer_directory(digest)).map_err(failed)?;
        let found = digest::layer_digest(&measure(tree.root()).map_err(failed)?.digest);
        if found == *digest { Ok(()) } else { Err(StoreError::Changed { digest: digest.clone(), found }) }
    }

    /// Removes a layer that no template uses. Whether a sandbox uses it is for the caller to know. Says whether it was there.
    pub fn remove(&self, digest: &LayerDigest) -> Result<bool, StoreError> {
        let failed = |source| StoreError::Remove { digest: digest.clone(), source };
        let guard = self.lock_references().map_err(failed)?;
        if let Some(template) = self.user_of(digest)? {
            return Err(StoreError::InUse { digest: digest.clone(), template });
        }
        let doomed = Staged::new(&self.staging_directory()).map_err(failed)?;
        match fs::rename(self.layers_directory().join(digest.as_str()), doomed.path().join("layer")) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(failed(error)),
        }
        drop(guard);
        let staging = fs::File::open(doomed.path()).map_err(failed)?;
        crate::archive::tree::remove(staging.as_fd(), b"layer").map_err(failed)?;
        Ok(true)
    }

    /// The directory that holds everything.
    pub(crate) fn pool(&self) -> &Path {
        &self.pool
    }

    fn layers_directory(&self) -> PathBuf {
        self.pool.join("layers")
    }

    pub(crate) fn staging_directory(&self) -> PathBuf {
        self.pool.join("staging")
    }

    fn templates_directory(&self) -> PathBuf {
        self.pool.join("templates")
    }
}
