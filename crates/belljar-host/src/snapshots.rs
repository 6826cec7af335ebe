//! Snapshots: captures with a name of their own, which outlive the sandbox they were taken of.
//!
//! ```text
//!   begin ── record (intent) ─▶ capture: disk, memory ─▶ finish: record "whole"
//! ```
//! The intent is written first and only a whole one is ever shown, so what a crash left half-way is invisible, and removed when the data
//! directory is next opened. A whole one is on disk: a power cut does not take it back. Sandboxes that were made from a snapshot do not need it any
//! more, since the filesystem counts who uses which block; so it can be removed at any time.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use belljar_ports::{SnapshotKind, SnapshotRecord};
use belljar_types::{IsolationClass, LayerDigest, SandboxId, SnapshotId};
use serde::{Deserialize, Serialize};

use crate::config::Places;
use crate::error::HostError;
use crate::inner::Inner;
use crate::pool::{MEMORY, Pool, memory_bytes};
use crate::record::{Identity, RecordState};
use crate::records;

/// One snapshot, as found again by its id.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Snapshot {
    /// Its name.
    pub id: SnapshotId,
    /// Whether everything of it is there.
    whole: bool,
    /// The engine it was taken by.
    pub class: IsolationClass,
    /// The sandbox it was taken of, which may be gone.
    pub source: SandboxId,
    /// The layers below its disk, lowest first, without the agent's.
    pub layers: Vec<LayerDigest>,
    /// The agent's layer.
    pub agent: Option<LayerDigest>,
    /// Whom the agent in its memory image takes itself for; none if it holds files only.
    pub identity: Option<Identity>,
    /// What its sandbox had written to disk, as counted by its quota, and the memory image.
    pub bytes: u64,
    /// How long its sandbox stood still for it.
    pub stood_still: Duration,
    /// When it was begun.
    pub taken_at: SystemTime,
}

impl Snapshot {
    /// One from elsewhere, before it is here.
    pub(crate) fn arriving(self, id: SnapshotId) -> Self {
        Self { id, whole: false, ..self }
    }

    /// The same when all of it is.
    pub(crate) fn arrived(self, bytes: u64) -> Self {
        Self { whole: true, bytes, ..self }
    }

    /// In the words of the contract.
    pub fn told(&self) -> SnapshotRecord {
        SnapshotRecord {
            id: self.id.clone(),
            kind: if self.identity.is_some() { SnapshotKind::Memory } else { SnapshotKind::Filesystem },
            source: self.source.clone(),
            layers: self.layers.clone(),
            bytes: self.bytes,
            stood_still: self.stood_still,
            taken_at: self.taken_at,
        }
    }
}

/// A snapshot that is being taken.
#[derive(Debug)]
pub struct Draft {
    pub(crate) snapshot: Snapshot,
    pub(crate) capture: PathBuf,
}

impl Draft {
    /// The directory for the engine's memory image; not there yet.
    pub fn image(&self) -> PathBuf {
        self.capture.join(MEMORY)
    }
}

impl Inner {
    /// Writes down that there is to be a snapshot of this sandbox.
    pub(crate) fn begin_snapshot(&self, id: &SandboxId, snapshot: &SnapshotId, with_memory: bool) -> Result<Draft, HostError> {
        self.usable()?;
        let record = records::read(&self.places, id)?.ok_or_else(|| HostError::NotFound { id: id.clone() })?;
        let identity = match (&record.state, &record.paused) {
            (RecordState::Running, _) => Some(record.identity()),
            (RecordState::Paused, Some(paused)) if with_memory && paused.identity.is_none() => {
                return Err(HostError::WrongState { id: id.clone(), state: "it was paused without its memory" });
            }
            (RecordState::Paused, Some(paused)) => paused.identity.clone(),
            _ => return Err(HostError::WrongState { id: id.clone(), state: "it is being made or resumed" }),
        };
        match DirBuilder::new().mode(0o700).create(self.places.snapshot_home(snapshot)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(HostError::SnapshotExists { id: snapshot.clone() });
            }
            Err(source) => return Err(HostError::Snapshot { operation: "make room for", id: snapshot.clone(), source }),
        }
        let snapshot = Snapshot {
            id: snapshot.clone(),
            whole: false,
            class: record.class,
            source: id.clone(),
            layers: record.spec.layers,
            agent: record.agent,
            identity: identity.filter(|_| with_memory),
            bytes: 0,
            stood_still: Duration::ZERO,
            taken_at: SystemTime::now(),
        };
        write(&self.places, &snapshot, "begin")?;
        let capture = self.places.snapshot(&snapshot.id);
        Ok(Draft { snapshot, capture })
    }

    /// Makes a snapshot visible, for good.
    pub(crate) fn finish_snapshot(&self, draft: Draft, stood_still: Duration) -> Result<Snapshot, HostError> {
        let Draft { mut snapshot, capture } = draft;
        let failed = |source| HostError::Snapshot { operation: "measure", id: snapshot.id.clone(), source };
        let memory = if snapshot.identity.is_some() { memory_bytes(&capture).map_err(failed)? } else { 0 };
        // A capture of the disk alone is written out as it is made.
        if snapshot.identity.is_some() {
            self.pool.sync().map_err(failed)?;
        }
        snapshot.bytes = self.pool.usage(&snapshot.source).unwrap_or(0) + memory;
        snapshot.stood_still = stood_still;
        snapshot.whole = true;
        write(&self.places, &snapshot, "finish")?;
        tracing::info!(sandbox = %snapshot.source, snapshot = %snapshot.id, bytes = snapshot.bytes, ?stood_still, "snapshot taken");
        Ok(snapshot)
    }

    /// The snapshot of this id, if it is whole.
    pub(crate) fn snapshot(&self, id: &SnapshotId) -> Result<Snapshot, HostError> {
        read(&self.places, id)?.ok_or_else(|| HostError::NoSnapshot { id: id.clone() })
    }

    pub(crate) fn snapshots(&self) -> Result<Vec<Snapshot>, HostError> {
        let ids: Vec<SnapshotId> = records::names(&self.places.snapshot_homes)?;
        ids.iter().filter_map(|id| read(&self.places, id).transpose()).collect()
    }

    /// Removes a snapshot, whole or not; does nothing if there is none.
    pub(crate) fn remove_snapshot(&self, id: &SnapshotId) -> Result<(), HostError> {
        self.usable()?;
        remove(&self.places, &self.pool, id)
    }
}

/// Removes what is not whole.
pub(crate) fn remove_unfinished(places: &Places, pool: &Pool) -> Result<(), HostError> {
    let mut ids: Vec<SnapshotId> = records::names(&places.snapshot_homes)?;
    ids.extend(records::names::<SnapshotId>(&places.snapshots)?);
    for id in ids {
        if read(places, &id)?.is_none() {
            tracing::warn!(snapshot = %id, "a snapshot that was never finished found; it is removed");
            remove(places, pool, &id)?;
        }
    }
    Ok(())
}

/// The record goes first: from then on nobody can see it, and the rest is removed here or when the data directory is next opened.
fn remove(places: &Places, pool: &Pool, id: &SnapshotId) -> Result<(), HostError> {
    let attempt = || {
        let home = places.snapshot_home(id);
        for step in [fs::remove_file(home.join(records::FILE)), fs::remove_dir_all(home)] {
            match step {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        pool.remove_capture(&places.snapshot(id))
    };
    attempt().map_err(|source| HostError::Snapshot { operation: "remove", id: id.clone(), source })
}

pub(crate) fn write(places: &Places, snapshot: &Snapshot, operation: &'static str) -> Result<(), HostError> {
    let written = records::put(&places.snapshot_home(&snapshot.id), snapshot, snapshot.whole);
    written.map_err(|source| HostError::Snapshot { operation, id: snapshot.id.clone(), source })
}

/// `None` if there is none, or none that is whole.
fn read(places: &Places, id: &SnapshotId) -> Result<Option<Snapshot>, HostError> {
    match fs::read(places.snapshot_home(id).join(records::FILE)) {
        Ok(bytes) => Ok(serde_json::from_slice::<Snapshot>(&bytes).ok().filter(|snapshot| snapshot.whole && snapshot.id == *id)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(HostError::Snapshot { operation: "read the record of", id: id.clone(), source }),
    }
}
