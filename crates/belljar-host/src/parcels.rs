//! Snapshots that come from elsewhere, and what of a snapshot goes elsewhere.
//!
//! ```text
//!   begin ── record (not whole) ─▶ an empty disk and memory directory, filled by the caller ─▶ finish: read-only, synced, record "whole"
//! ```
//! As with one that is taken here: only a whole one is ever seen, and what a crash left half-way goes when the data directory is next opened.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use belljar_types::SnapshotId;

use crate::error::HostError;
use crate::host::{Host, blocking};
use crate::inner::Inner;
use crate::pool::{MEMORY, memory_bytes};
use crate::snapshots::{Snapshot, write};

/// Where everything of a whole snapshot lies.
#[derive(Debug, Clone)]
pub struct Capture {
    /// What is known of it.
    pub snapshot: Snapshot,
    /// Its upper directory.
    pub upper: PathBuf,
    /// The files of its memory image, by name; none if it has files only.
    pub memory: Vec<PathBuf>,
}

/// A snapshot that is coming in.
#[derive(Debug)]
pub struct Incoming {
    snapshot: Snapshot,
    capture: PathBuf,
    upper: PathBuf,
}

impl Incoming {
    /// The empty directory for its upper tree.
    pub fn upper(&self) -> &Path {
        &self.upper
    }

    /// Where a file of its memory image goes. `name` has no slash.
    pub fn memory(&self, name: &str) -> PathBuf {
        self.capture.join(MEMORY).join(name)
    }
}

impl Host {
    /// Where a snapshot lies, for whoever copies it.
    pub async fn capture(&self, id: &SnapshotId) -> Result<Capture, HostError> {
        let (inner, id) = (self.inner.clone(), id.clone());
        blocking(move || inner.capture_of(&id)).await
    }

    /// Writes down that a snapshot comes in, as `id`, and makes room for it.
    pub async fn begin_incoming(&self, id: &SnapshotId, foreign: Snapshot) -> Result<Incoming, HostError> {
        let (inner, id) = (self.inner.clone(), id.clone());
        blocking(move || inner.begin_incoming(&id, foreign)).await
    }

    /// Makes it visible, for good.
    pub async fn finish_incoming(&self, incoming: Incoming) -> Result<Snapshot, HostError> {
        let inner = self.inner.clone();
        blocking(move || inner.finish_incoming(incoming)).await
    }
}

impl Inner {
    fn capture_of(&self, id: &SnapshotId) -> Result<Capture, HostError> {
        let snapshot = self.snapshot(id)?;
        let place = self.places.snapshot(id);
        let failed = |source| HostError::Snapshot { operation: "look at", id: id.clone(), source };
        let mut memory = Vec::new();
        if snapshot.identity.is_some() {
            for entry in fs::read_dir(place.join(MEMORY)).map_err(failed)? {
                memory.push(entry.map_err(failed)?.path());
            }
            memory.sort();
        }
        Ok(Capture { snapshot, upper: place.join("disk").join("upper"), memory })
    }

    fn begin_incoming(&self, id: &SnapshotId, foreign: Snapshot) -> Result<Incoming, HostError> {
        self.usable()?;
        match DirBuilder::new().mode(0o700).create(self.places.snapshot_home(id)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(HostError::SnapshotExists { id: id.clone() }),
            Err(source) => return Err(HostError::Snapshot { operation: "make room for", id: id.clone(), source }),
        }
        let snapshot = foreign.arriving(id.clone());
        write(&self.places, &snapshot, "begin")?;
        let capture = self.places.snapshot(id);
        let failed = |source| HostError::Snapshot { operation: "make room for", id: id.clone(), source };
        let room = || {
            fs::create_dir(&capture)?;
            let upper = self.pool.begin_disk(&capture)?.join("upper");
            fs::create_dir(&upper)?;
            fs::set_permissions(&upper, PermissionsExt::from_mode(0o755))?;
            if snapshot.identity.is_some() {
                fs::create_dir(capture.join(MEMORY))?;
            }
            Ok(upper)
        };
        let upper = room().map_err(failed)?;
        Ok(Incoming { snapshot, capture, upper })
    }

    fn finish_incoming(&self, incoming: Incoming) -> Result<Snapshot, HostError> {
        let Incoming { snapshot, capture, upper: _ } = incoming;
        let failed = |source| HostError::Snapshot { operation: "keep", id: snapshot.id.clone(), source };
        let disk = self.pool.finish_disk(&capture).map_err(failed)?;
        let memory = if snapshot.identity.is_some() { memory_bytes(&capture).map_err(failed)? } else { 0 };
        self.pool.sync().map_err(failed)?;
        let whole = snapshot.arrived(disk + memory);
        write(&self.places, &whole, "finish")?;
        tracing::info!(snapshot = %whole.id, bytes = whole.bytes, "a snapshot came in");
        Ok(whole)
    }
}
