//! Half-made layers. Each is made in a directory of its own that only its maker's lock keeps alive, so that whatever a crash leaves
//! behind is told from what is still being made, and swept at the next opening.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, FlockOperation, Mode, OFlags, flock};

use crate::archive::tree;

/// A half-made thing. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Staged {
    staging: PathBuf,
    name: String,
    /// Holds the lock; `None` once the directory has moved to its final place.
    lock: Option<OwnedFd>,
}

impl Staged {
    /// Makes `staging/<random>/`.
    pub(crate) fn new(staging: &Path) -> io::Result<Self> {
        let all = open(staging)?;
        // A sweep holds this lock exclusively: nothing can be swept between its making and its locking.
        flock(&all, FlockOperation::LockShared)?;
        let name = random_name()?;
        rustix::fs::mkdirat(&all, name.as_str(), Mode::from_raw_mode(0o700))?;
        let lock = tree::open_directory(all.as_fd(), name.as_bytes())?;
        // Shared, since it goes with the directory to its final place, where others may hold on to it too.
        flock(&lock, FlockOperation::NonBlockingLockShared)?;
        Ok(Self { staging: staging.to_owned(), name, lock: Some(lock) })
    }

    /// Its path on the host.
    pub(crate) fn path(&self) -> PathBuf {
        self.staging.join(&self.name)
    }

    /// It has been moved away: nothing is left to remove. What is returned still holds it there.
    pub(crate) fn moved(mut self) -> Option<OwnedFd> {
        self.lock.take()
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if self.lock.is_some()
            && let Ok(all) = open(&self.staging)
        {
            // What cannot be removed now is swept at the next opening.
            let _ = tree::remove(all.as_fd(), self.name.as_bytes());
        }
    }
}

/// Removes what nobody makes any more.
pub(crate) fn sweep(staging: &Path) -> io::Result<()> {
    let all = open(staging)?;
    flock(&all, FlockOperation::LockExclusive)?;
    for entry in Dir::read_from(&all)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let Ok(directory) = tree::open_directory(all.as_fd(), name) else {
            tree::remove(all.as_fd(), name)?;
            continue;
        };
        if flock(&directory, FlockOperation::NonBlockingLockExclusive).is_ok() {
            tree::remove(all.as_fd(), name)?;
        }
    }
    Ok(())
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// A name nobody else uses.
pub(crate) fn random_name() -> io::Result<String> {
    let mut bytes = [0; 12];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(belljar_types::hex(&bytes))
}
