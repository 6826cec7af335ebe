//! Archives that clients sent for builds, by project and digest: `uploads/<project>/<hash>`. They are hostile and nothing here looks into them.
//!
//! They lie in the pool, so that they cannot fill the host's own disk, and a project may have so many bytes of them and no more. Those that nobody
//! sent or used for a day go when the project sends the next.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use belljar_types::{FilesHash, ProjectId};

use super::{LayerStore, Staged, StoreError};

/// The most that one project may have here at a time.
const PROJECT_BYTES_MAX: u64 = 4 << 30;
/// How long an archive stays that is not used.
const UNUSED: Duration = Duration::from_secs(86_400);

/// An archive that is being received. Dropping it removes it.
pub(crate) struct Upload {
    staged: Staged,
    file: File,
    place: PathBuf,
    left: u64,
}

impl LayerStore {
    /// Begins to receive an archive.
    pub(crate) fn begin_upload(&self, project: &ProjectId, hash: &FilesHash) -> Result<Upload, StoreError> {
        let place = self.upload_path(project, hash);
        let begin = || {
            let directory = self.uploads_directory(project);
            fs::create_dir_all(&directory)?;
            let used = forget_unused(&directory)?;
            let staged = Staged::new(&self.staging_directory())?;
            let file = File::create(staged.path().join("files"))?;
            Ok(Upload { staged, file, place: place.clone(), left: PROJECT_BYTES_MAX.saturating_sub(used) })
        };
        begin().map_err(|source| StoreError::Upload { path: place.clone(), source })
    }

    /// An archive that was received whole; from now on it counts as used.
    pub(crate) fn open_upload(&self, project: &ProjectId, hash: &FilesHash) -> Result<Option<File>, StoreError> {
        let path = self.upload_path(project, hash);
        match File::options().read(true).write(true).open(&path) {
            Ok(file) => {
                // Only its age depends on it.
                let _ = file.set_modified(SystemTime::now());
                Ok(Some(file))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StoreError::Upload { path, source }),
        }
    }

    /// Where an archive lies, if it is there.
    pub(crate) fn upload_path(&self, project: &ProjectId, hash: &FilesHash) -> PathBuf {
        self.uploads_directory(project).join(hash.as_str())
    }

    fn uploads_directory(&self, project: &ProjectId) -> PathBuf {
        self.pool().join("uploads").join(project.as_str())
    }
}

impl Upload {
    /// Takes the next bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let failed = |source| StoreError::Upload { path: self.place.clone(), source };
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or_else(|| {
            let words = format!(
                "a project may have {PROJECT_BYTES_MAX} bytes of files for builds; those that are not used for a day go by themselves"
            );
            failed(io::Error::new(io::ErrorKind::QuotaExceeded, words))
        })?;
        self.file.write_all(bytes).map_err(failed)
    }

    /// It is whole: from now on it can be found.
    pub(crate) fn finish(self) -> Result<(), StoreError> {
        let finish = || {
            self.file.sync_all()?;
            fs::rename(self.staged.path().join("files"), &self.place)
        };
        finish().map_err(|source| StoreError::Upload { path: self.place.clone(), source })
    }
}

/// Removes what was not used for long, and says how many bytes are left.
fn forget_unused(directory: &std::path::Path) -> io::Result<u64> {
    let mut used = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if SystemTime::now().duration_since(metadata.modified()?).is_ok_and(|age| age > UNUSED) {
            fs::remove_file(entry.path())?;
        } else {
            used += metadata.len();
        }
    }
    Ok(used)
}
