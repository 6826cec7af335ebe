//! Volumes that are buckets of an object store. A process of its own serves each as a file system, mounted over the volume's directory in the pool;
//! so whatever is done with a volume is done with a bucket in the same way.
//!
//! ```text
//!   <data>/buckets/<id>     the operator's name for the bucket: the volume <id> is one
//!   <pool>/volumes/<id>     a small volume that nobody may write to, and over it what the broker serves
//! ```
//! The broker outlives the server, as sandboxes do. One that is found dead is replaced before the volume is used again; sandboxes that had it see
//! errors until then, and never the directory below.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use belljar_linux::private_file;
use belljar_types::{ProjectId, Volume, VolumeId};
use rustix::fs::{AtFlags, CWD, Mode};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

use crate::host::Host;
use crate::inner::Inner;
use crate::records;

/// What `statfs` says of a file system in user space.
const FUSE: i64 = 0x6573_5546;

/// Whoever can serve buckets.
pub trait Brokers: Send + Sync {
    /// Whether the operator has set up a bucket of this name for this project.
    fn knows(&self, bucket: &str, project: &ProjectId) -> bool;

    /// Serves a bucket on a directory from now on, and returns when it can be used.
    fn serve(&self, bucket: &str, at: &Path) -> io::Result<()>;
}

/// Who serves them here; nobody until somebody was named.
#[derive(Default)]
pub(crate) struct Buckets(OnceLock<Arc<dyn Brokers>>);

impl Host {
    /// Names who serves buckets, once.
    pub fn set_brokers(&self, brokers: Arc<dyn Brokers>) {
        if self.inner.buckets.0.set(brokers).is_err() {
            tracing::warn!("somebody serves buckets already; the first one stays");
        }
    }
}

impl Inner {
    pub(crate) fn knows_bucket(&self, bucket: &str, project: &ProjectId) -> bool {
        self.buckets.0.get().is_some_and(|brokers| brokers.knows(bucket, project))
    }

    /// Makes a volume that is a bucket, or takes the one that is there.
    pub(crate) fn make_bucket(&self, id: &VolumeId, bucket: &str) -> io::Result<()> {
        std::fs::create_dir_all(&self.places.buckets)?;
        // Before the volume: one that is meant to be a bucket is never taken for an ordinary one.
        private_file::write_whole(&self.bucket_file(id), bucket.as_bytes())?;
        if !self.is_served(id)? {
            self.pool.make_volume(id, Volume::LEAST_BYTES)?;
            rustix::fs::chmodat(CWD, self.places.volume(id), Mode::empty(), AtFlags::empty())?;
        }
        self.serve_bucket(id)
    }

    /// Sees to it that a volume which is a bucket is served; does nothing for others.
    pub(crate) fn serve_bucket(&self, id: &VolumeId) -> io::Result<()> {
        let bucket = match std::fs::read_to_string(self.bucket_file(id)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        let _one_after_the_other = self.buckets_turn();
        if self.is_served(id)? {
            return Ok(());
        }
        let brokers = self.buckets.0.get().ok_or_else(|| io::Error::other("this program serves no buckets"))?;
        brokers.serve(&bucket, &self.places.volume(id))
    }

    /// Whether somebody serves it. What a broker that died left mounted is taken away.
    fn is_served(&self, id: &VolumeId) -> io::Result<bool> {
        let place = self.places.volume(id);
        match rustix::fs::statfs(&place) {
            Ok(found) => Ok(found.f_type == FUSE),
            Err(Errno::NOTCONN | Errno::CONNABORTED) => {
                tracing::warn!(volume = %id, "the broker of a bucket has died; another one takes over");
                unmount(&place, UnmountFlags::DETACH)?;
                Ok(false)
            }
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Whether a volume is a bucket.
    pub(crate) fn is_bucket(&self, id: &VolumeId) -> bool {
        self.bucket_file(id).exists()
    }

    /// Ends the serving of a bucket; the bucket itself is not touched. Does nothing for other volumes.
    pub(crate) fn drop_bucket(&self, id: &VolumeId) -> io::Result<()> {
        let file = self.bucket_file(id);
        if !file.exists() {
            return Ok(());
        }
        self.end_serving(id)?;
        std::fs::remove_file(file)
    }

    /// Ends the serving of all of them, so that the pool can be unmounted.
    pub(crate) fn close_buckets(&self) -> io::Result<()> {
        if !self.places.buckets.exists() {
            return Ok(());
        }
        let ids: Vec<VolumeId> = records::names(&self.places.buckets).map_err(io::Error::other)?;
        ids.iter().try_for_each(|id| self.end_serving(id))
    }

    fn end_serving(&self, id: &VolumeId) -> io::Result<()> {
        while self.is_served(id)? {
            // Without waiting for whoever has something open: the last one's leave ends the broker.
            unmount(self.places.volume(id), UnmountFlags::DETACH)?;
        }
        Ok(())
    }

    fn bucket_file(&self, id: &VolumeId) -> PathBuf {
        self.places.buckets.join(id.as_str())
    }
}
