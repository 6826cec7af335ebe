//! Removes layers that nothing refers to.
//!
//! ```text
//!   lock the references ─▶ read all templates ─▶ move each unused layer to staging ─▶ unlock ─▶ delete
//! ```
//! A layer moves as a whole, so a crash leaves it in its place or in staging, which the next opening empties. One that somebody holds
//! on to stays: its template is still being made. Nothing is removed while any template cannot be read.
//!
//! A full disk has no room to move anything, and a sweep is what makes room. Then a layer goes where it is, its description first: without it
//! nobody takes it for a layer, and the next sweep goes on with what a crash leaves.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use belljar_types::LayerDigest;
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

use super::{DESCRIPTION, LayerStore, Staged, StoreError};
use crate::archive::tree;

/// A layer that a sweep removed or would remove, and its bytes.
pub(crate) type SweptLayer = (LayerDigest, u64);

impl LayerStore {
    /// Removes layers that no template of anybody and nothing in `keep` refers to; or only says which.
    pub(crate) fn sweep(&self, keep: &BTreeSet<LayerDigest>, dry_run: bool) -> Result<Vec<SweptLayer>, StoreError> {
        let layers = self.layers_directory();
        let failed = |source| StoreError::Sweep { path: layers.clone(), source };
        let references = self.lock_references().map_err(failed)?;
        let used: BTreeSet<LayerDigest> = self.templates_of_all()?.into_iter().flat_map(|template| template.layers).collect();
        let doomed = if dry_run { None } else { unless_full(Staged::new(&self.staging_directory())).map_err(failed)? };
        let (mut swept, mut moved) = (Vec::new(), Vec::new());
        for digest in self.layer_names()? {
            if used.contains(&digest) || keep.contains(&digest) {
                continue;
            }
            let place = layers.join(digest.as_str());
            let lock = rustix::fs::openat(CWD, &place, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
            let lock = lock.map_err(|errno| failed(errno.into()))?;
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) => continue,
                locked => locked.map_err(|errno| failed(errno.into()))?,
            }
            // Without a readable description nobody can use it either, and it goes like the rest.
            let layer = self.layer(&digest).ok().flatten();
            // Sandboxes that live through an upgrade still stand on the agent they began with, and name it nowhere.
            if layer.as_ref().is_some_and(|layer| layer.origin == crate::agent::ORIGIN) {
                continue;
            }
            let bytes = layer.map_or(0, |layer| layer.size);
            if !dry_run {
                match &doomed {
                    Some(doomed) if unless_full(fs::rename(&place, doomed.path().join(digest.as_str()))).map_err(failed)?.is_some() => {
                        moved.push(digest.clone());
                    }
                    _ => remove_in_place(&layers, &digest, lock.as_fd()).map_err(failed)?,
                }
            }
            swept.push((digest, bytes));
        }
        if let Some(doomed) = doomed.filter(|_| !moved.is_empty()) {
            // Their names are gone from the disk before the first of their files is.
            let written = fs::File::open(&layers).and_then(|directory| directory.sync_all());
            unless_full(written).map_err(failed)?;
            drop(references);
            let directory = fs::File::open(doomed.path()).map_err(failed)?;
            for digest in &moved {
                tree::remove(directory.as_fd(), digest.as_str().as_bytes()).map_err(failed)?;
            }
        }
        Ok(swept)
    }
}

/// Removes a layer without moving it first. Whoever calls has its lock.
pub(super) fn remove_in_place(layers: &Path, digest: &LayerDigest, lock: BorrowedFd<'_>) -> io::Result<()> {
    tree::remove(lock, DESCRIPTION.as_bytes())?;
    tree::remove(fs::File::open(layers)?.as_fd(), digest.as_str().as_bytes())
}

/// Nothing where there was no room.
fn unless_full<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(error) if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => Ok(None),
        other => other.map(Some),
    }
}
