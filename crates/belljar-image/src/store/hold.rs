//! Holding on to layers that no template names yet.
//!
//! Between the import of a layer and the template that will name it, minutes may pass, and a sweep in between must not take it for
//! rubbish. So the maker keeps a shared lock on the layer's directory. A new layer has it from birth: the lock on the half-made
//! directory goes with it through the rename. Locks end with their process, so a crash holds on to nothing.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use belljar_types::LayerDigest;
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock};
use rustix::io::{Errno, retry_on_intr};

use super::sweep::remove_in_place;
use super::{DESCRIPTION, LayerStore};

/// The locks of one maker.
#[derive(Debug, Default)]
pub(super) struct Held(Mutex<Vec<OwnedFd>>);

impl LayerStore {
    /// The same store, which holds on to every layer that it makes or finds from now on, until it is dropped.
    pub(crate) fn holding(&self) -> Self {
        Self { held: Some(Arc::default()), ..self.clone() }
    }

    /// Holds on to a layer, if this store does such. Says whether the layer is there.
    pub(crate) fn hold(&self, digest: &LayerDigest) -> io::Result<bool> {
        let place = self.layers_directory().join(digest.as_str());
        let directory = match rustix::fs::openat(CWD, &place, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(false),
            opened => opened?,
        };
        retry_on_intr(|| flock(&directory, FlockOperation::LockShared))?;
        // Whoever removed it had the lock before us, and moved it away.
        let (held, named) = (rustix::fs::fstat(&directory)?, rustix::fs::statat(CWD, &place, AtFlags::SYMLINK_NOFOLLOW));
        match named {
            Ok(named) if (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino) && is_whole(&directory)? => {
                self.keep_held(Some(directory));
            }
            Ok(_) | Err(Errno::NOENT) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    /// Removes what a sweep that was cut short on a full disk left in the place of a layer.
    pub(super) fn clear_remains(&self, digest: &LayerDigest) -> io::Result<()> {
        let place = self.layers_directory().join(digest.as_str());
        let directory = match rustix::fs::openat(CWD, &place, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(()),
            opened => opened?,
        };
        match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            // Somebody is at it already, or has just made the layer anew.
            Err(Errno::WOULDBLOCK) => Ok(()),
            Ok(()) if !is_whole(&directory)? => remove_in_place(&self.layers_directory(), digest, directory.as_fd()),
            locked => Ok(locked?),
        }
    }

    pub(super) fn keep_held(&self, lock: Option<OwnedFd>) {
        if let (Some(held), Some(lock)) = (&self.held, lock) {
            held.0.lock().unwrap_or_else(PoisonError::into_inner).push(lock);
        }
    }
}

/// Whether it says what it is: that goes first from a layer that is removed where it is.
fn is_whole(layer: &OwnedFd) -> io::Result<bool> {
    match rustix::fs::statat(layer, DESCRIPTION, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
