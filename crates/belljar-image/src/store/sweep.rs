//! Removes layers that nothing refers to.
//!
//! ```text
//!   lock the references ─▶ read all templates ─▶ move each unused layer to staging ─▶ unlock ─▶ delete
//! ```
//! A layer moves as a whole, so a crash leaves it in its place or in staging, which the next opening empties. One that somebody holds
//! on to stays: its template is still being made. Nothing is removed while any template cannot be read.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::AsFd;

use belljar_types::LayerDigest;
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

use super::{LayerStore, Staged, StoreError};
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
        let doomed = Staged::new(&self.staging_directory()).map_err(failed)?;
        let mut swept = Vec::new();
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
                fs::rename(&place, doomed.path().join(digest.as_str())).map_err(failed)?;
            }
            swept.push((digest, bytes));
        }
        if !dry_run && !swept.is_empty() {
            // Their names are gone from the disk before the first of their files is.
            fs::File::open(&layers).and_then(|directory| directory.sync_all()).map_err(failed)?;
            drop(references);
            let directory = fs::File::open(doomed.path()).map_err(failed)?;
            for (digest, _) in &swept {
                tree::remove(directory.as_fd(), digest.as_str().as_bytes()).map_err(failed)?;
            }
        }
        Ok(swept)
    }
}
