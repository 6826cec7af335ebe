//! Volumes in the pool: a subvolume each, with a limit of its own, that belongs to no sandbox.
//!
//! ```text
//!   <pool>/volumes/<id>.next   being made: subvolume or snapshot, then its limit
//!   <pool>/volumes/<id>        whole: the one step between the two is a rename
//! ```
//! There is no record beside them: what people call them and whose they are is for the store to know. A read-only subvolume can only be renamed
//! within its directory, which is why half-made ones lie here too; they are removed when the pool is opened.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use belljar_linux::btrfs;
use belljar_types::VolumeId;
use rustix::fs::{Gid, Mode, Uid};

use super::{DIRECTORY, Open, Pool};
use crate::error::HostError;

/// Whom a new volume belongs to: the default user of templates. Others may write to it too, since nobody knows which users its sandboxes will have.
pub(crate) const OWNER: u32 = 1000;
const EVERYBODY: u32 = 0o777;

impl Pool {
    /// Makes an empty volume with its limit, or takes the one that is there.
    pub(crate) fn make_volume(&self, id: &VolumeId, bytes: u64) -> io::Result<()> {
        self.put_volume(id, bytes, |open, next| {
            btrfs::create_subvolume(&open.volumes, OsStr::new(next))?;
            let directory = rustix::fs::openat(&open.volumes, next, DIRECTORY, Mode::empty())?;
            rustix::fs::fchown(&directory, Some(Uid::from_raw(OWNER)), Some(Gid::from_raw(OWNER)))?;
            Ok(rustix::fs::fchmod(&directory, Mode::from_raw_mode(EVERYBODY))?)
        })
    }

    /// Makes a volume that holds what another holds now, or takes the one that is there. Its limit counts what is written to it from then on.
    pub(crate) fn copy_volume(&self, source: &VolumeId, id: &VolumeId, bytes: u64, read_only: bool) -> io::Result<()> {
        self.put_volume(id, bytes, |open, next| {
            let source = rustix::fs::openat(&open.volumes, source.as_str(), DIRECTORY, Mode::empty())?;
            btrfs::snapshot_subvolume(&source, &open.volumes, OsStr::new(next), read_only)
        })
    }

    fn put_volume(&self, id: &VolumeId, bytes: u64, make: impl FnOnce(&Open, &str) -> io::Result<()>) -> io::Result<()> {
        let next = format!("{id}.next");
        self.with(|open| {
            match Open::id_in(&open.volumes, id.as_str()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => return other.map(drop),
            }
            self.drop_volume(open, &next)?;
            make(open, &next)?;
            btrfs::limit_subvolume(&open.filesystem, Open::id_in(&open.volumes, &next)?, bytes)?;
            rustix::fs::renameat(&open.volumes, next.as_str(), &open.volumes, id.as_str())?;
            // Whoever is told that it is there finds it after a power cut too.
            btrfs::sync(&open.filesystem)
        })
    }

    /// Drops a volume with all it holds; does nothing if there is none.
    pub(crate) fn remove_volume(&self, id: &VolumeId) -> io::Result<()> {
        self.with(|open| self.drop_volume(open, id.as_str()))
    }

    /// Bytes that were written to a volume.
    pub(crate) fn volume_usage(&self, id: &VolumeId) -> io::Result<u64> {
        self.with(|open| btrfs::subvolume_usage(&self.filesystem_id, Open::id_in(&open.volumes, id.as_str())?))
    }

    /// The root directory of a volume.
    pub(crate) fn open_volume(&self, id: &VolumeId) -> io::Result<OwnedFd> {
        self.with(|open| Ok(rustix::fs::openat(&open.volumes, id.as_str(), DIRECTORY, Mode::empty())?))
    }

    /// Removes what was never whole.
    pub(crate) fn remove_unfinished_volumes(&self, volumes: &Path) -> Result<(), HostError> {
        let attempt = || {
            for entry in std::fs::read_dir(volumes)? {
                let name = entry?.file_name();
                let Some(name) = name.to_str().filter(|name| name.parse::<VolumeId>().is_err()) else { continue };
                tracing::warn!(name, "a volume that was never finished found; it is removed");
                self.with(|open| self.drop_volume(open, name))?;
            }
            Ok(())
        };
        attempt().map_err(|source| HostError::Files { operation: "remove half-made volumes of", path: volumes.to_owned(), source })
    }

    fn drop_volume(&self, open: &Open, name: &str) -> io::Result<()> {
        let subvolume = match Open::id_in(&open.volumes, name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        btrfs::delete_subvolume(&open.volumes, OsStr::new(name))?;
        self.lock_dropped().push(subvolume);
        Ok(())
    }
}
