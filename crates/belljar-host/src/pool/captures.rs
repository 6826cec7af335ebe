//! Captures: what a sandbox's disk held at one moment, kept beside a memory image of the same moment if there is one.
//!
//! ```text
//!   <capture>/disk      read-only subvolume, made in constant time, sharing every block with the disk it was taken of
//!   <capture>/memory/   files that the engine wrote; never changed afterwards, so they are shared by linking them
//! ```
//! A disk that is made from a capture has a quota of its own, which counts what is written to it from then on. What it shares stays on
//! the account of whoever wrote it, for as long as any capture or disk holds it.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use belljar_linux::btrfs;
use belljar_types::SandboxId;
use rustix::fs::{Mode, OFlags};

use super::{DIRECTORY, Open, Pool, make_directory};
use crate::error::HostError;

const DISK: &str = "disk";
/// The writable disk of a capture that is still being filled.
const DRAFT: &str = "draft";
/// Where in a capture the engine puts its memory image.
pub(crate) const MEMORY: &str = "memory";

impl Pool {
    /// Keeps what a sandbox's disk holds now. Nobody may write to it meanwhile who would mind.
    pub(crate) fn capture(&self, id: &SandboxId, into: &Path) -> Result<(), HostError> {
        make_directory(into)?;
        let kept = self.with(|open| {
            let disk = rustix::fs::openat(&open.subvolumes, id.as_str(), DIRECTORY, Mode::empty())?;
            btrfs::snapshot_subvolume(&disk, btrfs::open_directory(into)?, OsStr::new(DISK), true)
        });
        kept.map_err(|source| HostError::Disk { operation: "capture", id: id.clone(), source })
    }

    /// Makes a second capture of the same content: blocks and images are shared.
    pub(crate) fn copy_capture(&self, from: &Path, into: &Path, with_memory: bool) -> io::Result<()> {
        fs::create_dir(into)?;
        let source = btrfs::open_directory(&from.join(DISK))?;
        btrfs::snapshot_subvolume(&source, btrfs::open_directory(into)?, OsStr::new(DISK), true)?;
        if with_memory {
            fs::create_dir(into.join(MEMORY))?;
            for entry in fs::read_dir(from.join(MEMORY))? {
                let entry = entry?;
                fs::hard_link(entry.path(), into.join(MEMORY).join(entry.file_name()))?;
            }
        }
        Ok(())
    }

    /// Makes a sandbox's disk from a capture, in place of the one that may be there, with a limit for what it will write itself.
    pub(crate) fn create_from(&self, id: &SandboxId, capture: &Path, bytes: u64) -> Result<(), HostError> {
        self.remove(id)?;
        let made = self.with(|open| {
            let source = btrfs::open_directory(&capture.join(DISK))?;
            btrfs::snapshot_subvolume(&source, &open.subvolumes, OsStr::new(id.as_str()), false)?;
            let directory = rustix::fs::openat(&open.subvolumes, id.as_str(), DIRECTORY, Mode::empty())?;
            btrfs::limit_subvolume(&open.filesystem, btrfs::subvolume_id(&directory)?, bytes)
        });
        made.map_err(|source| HostError::Disk { operation: "make from a capture", id: id.clone(), source })
    }

    /// Gives a disk that was used before a new directory for overlayfs, which refuses one that another mount left without a sync.
    pub(crate) fn renew_work(&self, id: &SandboxId, disk: &Path) -> Result<(), HostError> {
        let attempt = || {
            match fs::remove_dir_all(disk.join("work")) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let directory = rustix::fs::open(disk, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
            Ok(rustix::fs::mkdirat(&directory, "work", Mode::RWXU)?)
        };
        attempt().map_err(|source| HostError::Disk { operation: "renew the work directory of", id: id.clone(), source })
    }

    /// Drops a capture; does nothing if there is none.
    pub(crate) fn remove_capture(&self, capture: &Path) -> io::Result<()> {
        let directory = match btrfs::open_directory(capture) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        for name in [DISK, DRAFT] {
            self.drop_subvolume(&directory, name)?;
        }
        fs::remove_dir_all(capture)
    }

    fn drop_subvolume(&self, directory: &OwnedFd, name: &str) -> io::Result<()> {
        match Open::id_in(directory, name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            subvolume => {
                let subvolume = subvolume?;
                btrfs::delete_subvolume(directory, OsStr::new(name))?;
                self.lock_dropped().push(subvolume);
            }
        }
        Ok(())
    }

    /// Makes an empty disk in a capture, to be filled, and says where.
    pub(crate) fn begin_disk(&self, capture: &Path) -> io::Result<PathBuf> {
        btrfs::create_subvolume(btrfs::open_directory(capture)?, OsStr::new(DRAFT))?;
        Ok(capture.join(DRAFT))
    }

    /// Makes the filled disk that capture's own, never to be changed again, and says how much is on it.
    pub(crate) fn finish_disk(&self, capture: &Path) -> io::Result<u64> {
        let directory = btrfs::open_directory(capture)?;
        let draft = btrfs::open_directory(&capture.join(DRAFT))?;
        btrfs::snapshot_subvolume(&draft, &directory, OsStr::new(DISK), true)?;
        let bytes = btrfs::subvolume_usage(&self.filesystem_id, btrfs::subvolume_id(&draft)?).unwrap_or(0);
        drop(draft);
        self.drop_subvolume(&directory, DRAFT)?;
        Ok(bytes)
    }
}

/// Bytes of a memory image.
pub(crate) fn memory_bytes(capture: &Path) -> io::Result<u64> {
    fs::read_dir(capture.join(MEMORY))?.map(|entry| Ok(entry?.metadata()?.len())).sum()
}
