//! [`HostVolumes`]: the volumes of a host, and their content without a sandbox.
//!
//! Sandboxes write to volumes as they like, also while somebody reads here. So every path is walked by `openat2` below the volume's root without
//! following a link (`tree`), and files are opened without waiting and looked at before they are used (`content`).

mod content;
mod tree;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use belljar_linux::removal;
use belljar_ports::{ContentStream, VolumeError, VolumeFile, Volumes};
use belljar_types::{ByteRange, EntryChange, Invalid, ProjectId, VolumeEntry, VolumeId, VolumePath, VolumeWrite};
use rustix::io::Errno;

use crate::host::{Host, blocking};
use crate::inner::Inner;
use crate::records;

/// How long a directory is removed, which sandboxes may be filling meanwhile. What is left then can be asked for again.
const REMOVAL_PATIENCE: Duration = Duration::from_secs(60);

/// The volumes of a host.
pub struct HostVolumes {
    inner: Arc<Inner>,
}

impl Host {
    /// Its volumes.
    pub fn volumes(&self) -> HostVolumes {
        HostVolumes { inner: Arc::clone(&self.inner) }
    }
}

impl HostVolumes {
    /// Does something with a volume as a whole.
    async fn storage<T: Send + 'static>(
        &self,
        operation: &'static str,
        id: &VolumeId,
        work: impl FnOnce(&Inner) -> io::Result<T> + Send + 'static,
    ) -> Result<T, VolumeError> {
        let inner = Arc::clone(&self.inner);
        let done = blocking(move || {
            inner.usable()?;
            Ok(work(&inner))
        });
        match done.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => Err(VolumeError::Absent { id: id.clone() }),
            Ok(Err(source)) => {
                Err(full(id, &source).unwrap_or_else(|| VolumeError::Storage { operation, id: id.clone(), source: Box::new(source) }))
            }
            Err(source) => Err(VolumeError::Storage { operation, id: id.clone(), source: Box::new(source) }),
        }
    }

    /// Does something with what is at a path, seen from the volume's root.
    async fn at<T: Send + 'static>(
        &self,
        operation: &'static str,
        id: &VolumeId,
        path: &VolumePath,
        work: impl FnOnce(&OwnedFd, &VolumePath) -> io::Result<T> + Send + 'static,
    ) -> Result<T, VolumeError> {
        let (of, asked) = (id.clone(), path.clone());
        let done = self.storage(operation, id, move |inner| {
            inner.serve_bucket(&of)?;
            let root = inner.pool.open_volume(&of)?;
            Ok(work(&root, &asked))
        });
        done.await?.map_err(|error| told(operation, id, path, error))
    }
}

#[async_trait]
impl Volumes for HostVolumes {
    async fn make(&self, id: &VolumeId, size_bytes: u64) -> Result<(), VolumeError> {
        let of = id.clone();
        self.storage("make", id, move |inner| inner.pool.make_volume(&of, size_bytes)).await
    }

    async fn make_bucket(&self, id: &VolumeId, bucket: &str, project: &ProjectId) -> Result<(), VolumeError> {
        if !self.inner.knows_bucket(bucket, project) {
            return Err(Invalid::new("bucket", "a bucket that the operator set up for this project", bucket).into());
        }
        let (of, bucket) = (id.clone(), bucket.to_owned());
        self.storage("make a bucket of", id, move |inner| inner.make_bucket(&of, &bucket)).await
    }

    async fn copy(&self, source: &VolumeId, id: &VolumeId, size_bytes: u64, read_only: bool) -> Result<(), VolumeError> {
        let (from, of) = (source.clone(), id.clone());
        self.storage("copy", source, move |inner| inner.pool.copy_volume(&from, &of, size_bytes, read_only)).await
    }

    async fn remove(&self, id: &VolumeId) -> Result<(), VolumeError> {
        let of = id.clone();
        self.storage("remove", id, move |inner| {
            inner.drop_bucket(&of)?;
            inner.pool.remove_volume(&of)
        })
        .await
    }

    async fn inventory(&self) -> Result<Vec<VolumeId>, VolumeError> {
        let inner = Arc::clone(&self.inner);
        let found = blocking(move || records::names(&inner.places.volumes)).await;
        found.map_err(|source| VolumeError::Inventory(Box::new(source)))
    }

    async fn usage(&self, id: &VolumeId) -> Result<u64, VolumeError> {
        let of = id.clone();
        // What is in a bucket is not on this host.
        self.storage("measure", id, move |inner| if inner.is_bucket(&of) { Ok(0) } else { inner.pool.volume_usage(&of) }).await
    }

    async fn stat(&self, id: &VolumeId, path: &VolumePath) -> Result<VolumeEntry, VolumeError> {
        self.at("look into", id, path, tree::stat).await
    }

    async fn list(&self, id: &VolumeId, path: &VolumePath, depth: u32, limit: u32) -> Result<Vec<VolumeEntry>, VolumeError> {
        self.at("list a directory of", id, path, move |root, path| tree::list(root, path, depth, limit)).await
    }

    async fn read(&self, id: &VolumeId, path: &VolumePath, range: ByteRange) -> Result<VolumeFile, VolumeError> {
        let (file, entry) = self.at("read a file of", id, path, content::open).await?;
        Ok(VolumeFile { entry, content: content::stream(file, range) })
    }

    async fn write(
        &self,
        id: &VolumeId,
        path: &VolumePath,
        options: VolumeWrite,
        content: ContentStream,
    ) -> Result<VolumeEntry, VolumeError> {
        const OPERATION: &str = "write a file to";
        options.change.validate()?;
        let draft = self.at(OPERATION, id, path, move |root, path| content::begin(root, path, options)).await?;
        let filled = draft.fill(content).await.map_err(|failure| match failure {
            content::Unfilled::Sender(source) => VolumeError::Upload { id: id.clone(), path: path.clone(), source },
            content::Unfilled::Disk(error) => told(OPERATION, id, path, error),
        })?;
        self.at(OPERATION, id, path, move |_, path| filled.finish(path, options)).await
    }

    async fn make_directory(
        &self,
        id: &VolumeId,
        path: &VolumePath,
        change: EntryChange,
        parents: bool,
    ) -> Result<VolumeEntry, VolumeError> {
        change.validate()?;
        self.at("make a directory in", id, path, move |root, path| tree::make_directory(root, path, change, parents)).await
    }

    async fn change(&self, id: &VolumeId, path: &VolumePath, change: EntryChange) -> Result<VolumeEntry, VolumeError> {
        change.validate()?;
        self.at("change an entry of", id, path, move |root, path| tree::change(root, path, change)).await
    }

    async fn remove_entry(&self, id: &VolumeId, path: &VolumePath) -> Result<(), VolumeError> {
        not_root(path)?;
        self.at("remove something from", id, path, |root, path| {
            let (parent, name) = tree::parent_of(root, path)?;
            removal::remove(&parent, name, REMOVAL_PATIENCE)
        })
        .await
    }

    async fn rename(&self, id: &VolumeId, from: &VolumePath, to: &VolumePath) -> Result<VolumeEntry, VolumeError> {
        const OPERATION: &str = "move something in";
        not_root(from)?;
        not_root(to)?;
        if to.as_path().starts_with(from.as_path()) {
            return Err(Invalid::new("to", "a path outside what is moved", to.to_string()).into());
        }
        self.stat(id, from).await?;
        let from = from.clone();
        self.at(OPERATION, id, to, move |root, to| tree::rename(root, &from, to)).await
    }
}

fn not_root(path: &VolumePath) -> Result<(), Invalid> {
    if path.is_root() { Err(Invalid::new("path", "something in the volume, not its root", "/")) } else { Ok(()) }
}

/// A volume that has reached its size, and a disk that has no room for any, are different people's to mend.
fn full(id: &VolumeId, error: &io::Error) -> Option<VolumeError> {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::DQUOT) => Some(VolumeError::Full { id: id.clone() }),
        Some(Errno::NOSPC) => Some(VolumeError::HostFull { id: id.clone() }),
        _ => None,
    }
}

/// In the words of the contract.
fn told(operation: &'static str, id: &VolumeId, path: &VolumePath, error: io::Error) -> VolumeError {
    let (id, path) = (id.clone(), path.clone());
    let wrong = |found| VolumeError::WrongKind { id: id.clone(), path: path.clone(), found };
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT) => VolumeError::NoEntry { id, path },
        Some(Errno::EXIST | Errno::NOTEMPTY) => VolumeError::EntryExists { id, path },
        Some(Errno::LOOP | Errno::XDEV) => wrong("a symbolic link or behind one; links in a volume are not followed here"),
        Some(Errno::NOTDIR) => wrong("no directory, or below something that is none"),
        Some(Errno::ISDIR) => wrong("a directory"),
        Some(Errno::NXIO | Errno::ACCESS | Errno::NODEV) => wrong("a pipe, socket or device, which cannot be used here"),
        Some(Errno::DQUOT) => VolumeError::Full { id },
        Some(Errno::NOSPC) => VolumeError::HostFull { id },
        Some(Errno::ROFS) => VolumeError::ReadOnly { id },
        Some(Errno::OPNOTSUPP | Errno::PERM) => wrong("in a bucket, which is written from a sandbox or with its own tools"),
        Some(Errno::NAMETOOLONG) => Invalid::new("path", "parts of at most 255 bytes", path.to_string()).into(),
        _ => VolumeError::Storage { operation, id, source: Box::new(error) },
    }
}
