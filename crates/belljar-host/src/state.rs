//! What [`Host`] offers engines for state that lasts: snapshots, forks, pauses. Engines decide when a sandbox stands still and what becomes of
//! its memory; files, records and the order of steps are the same for all, and are here.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use belljar_types::{ExecutionId, IsolationClass, LayerDigest, SandboxId, SandboxSpec, SnapshotId};

use crate::error::HostError;
use crate::host::{Host, Reservation, blocking};
use crate::inner::Inner;
use crate::pool::MEMORY;
use crate::record::{RecordState, Stillness};
use crate::records;
use crate::snapshots::{Draft, Snapshot};

impl Host {
    /// Like [`Host::reserve`], on the disk of a snapshot, and with its memory if it has that. `spec.layers` is replaced by the snapshot's.
    pub async fn reserve_fork(&self, class: IsolationClass, spec: &SandboxSpec, from: &SnapshotId) -> Result<Reservation, HostError> {
        let (inner, spec, from) = (self.inner.clone(), spec.clone(), from.clone());
        blocking(move || inner.reserve(class, spec, Some(&from))).await
    }

    /// Takes a snapshot of a sandbox's files. If it runs, it stands still for the moment that the filesystem needs, whatever their number.
    pub async fn snapshot_files(&self, id: &SandboxId, snapshot: &SnapshotId) -> Result<Snapshot, HostError> {
        let (inner, id, snapshot) = (self.inner.clone(), id.clone(), snapshot.clone());
        blocking(move || inner.whole_snapshot(&id, &snapshot, false, |draft| inner.copy_files(&id, draft))).await
    }

    /// Takes a snapshot of a paused sandbox, with the memory that was kept or without.
    pub async fn snapshot_paused(&self, id: &SandboxId, snapshot: &SnapshotId, with_memory: bool) -> Result<Snapshot, HostError> {
        let (inner, id, snapshot) = (self.inner.clone(), id.clone(), snapshot.clone());
        blocking(move || inner.whole_snapshot(&id, &snapshot, with_memory, |draft| inner.copy_paused(&id, draft, with_memory))).await
    }

    /// Begins a snapshot with memory; the engine writes its image to [`Draft::image`].
    pub async fn begin_snapshot(&self, id: &SandboxId, snapshot: &SnapshotId) -> Result<Draft, HostError> {
        let (inner, id, snapshot) = (self.inner.clone(), id.clone(), snapshot.clone());
        blocking(move || {
            let draft = inner.begin_snapshot(&id, &snapshot, true)?;
            crate::pool::make_directory(&draft.capture)?;
            Ok(draft)
        })
        .await
    }

    /// Puts the disk into a snapshot that was begun; the sandbox must stand still.
    pub async fn copy_disk(&self, draft: Draft) -> Result<Draft, HostError> {
        let inner = self.inner.clone();
        blocking(move || inner.pool.capture(&draft.snapshot.source, &draft.capture).map(|()| draft)).await
    }

    /// Makes a snapshot that was begun visible.
    pub async fn finish_snapshot(&self, draft: Draft, stood_still: Duration) -> Result<Snapshot, HostError> {
        let inner = self.inner.clone();
        blocking(move || inner.finish_snapshot(draft, stood_still)).await
    }

    /// Removes a snapshot, whole or not; does nothing if there is none. Sandboxes that were made from it do not notice.
    pub async fn remove_snapshot(&self, snapshot: &SnapshotId) -> Result<(), HostError> {
        let (inner, snapshot) = (self.inner.clone(), snapshot.clone());
        blocking(move || inner.remove_snapshot(&snapshot)).await
    }

    /// What is written down about a snapshot.
    pub async fn snapshot(&self, snapshot: &SnapshotId) -> Result<Snapshot, HostError> {
        let (inner, snapshot) = (self.inner.clone(), snapshot.clone());
        blocking(move || inner.snapshot(&snapshot)).await
    }

    /// All whole snapshots that an engine took.
    pub async fn snapshots(&self, class: IsolationClass) -> Result<Vec<Snapshot>, HostError> {
        let inner = self.inner.clone();
        blocking(move || Ok(inner.snapshots()?.into_iter().filter(|snapshot| snapshot.class == class).collect())).await
    }

    /// The layers that sandboxes and snapshots need, agents' included: a sweep leaves these alone.
    pub async fn layers_in_use(&self) -> Result<BTreeSet<LayerDigest>, HostError> {
        let inner = self.inner.clone();
        blocking(move || inner.layers_in_use()).await
    }

    /// What a sandbox has written over its layers. It must be at rest with nothing but its disk: then nobody writes there.
    pub async fn written(&self, class: IsolationClass, id: &SandboxId) -> Result<PathBuf, HostError> {
        let (inner, id) = (self.inner.clone(), id.clone());
        blocking(move || {
            let record = records::read(&inner.places, &id)?.filter(|record| record.class == class);
            let record = record.ok_or_else(|| HostError::NotFound { id: id.clone() })?;
            match (&record.state, &record.paused) {
                (RecordState::Paused, Some(paused)) if paused.identity.is_none() && !paused.fresh_disk => {
                    Ok(inner.places.subvolume(&id).join("upper"))
                }
                _ => Err(HostError::WrongState { id, state: "it is not paused without its memory" }),
            }
        })
        .await
    }

    /// Writes down whether the sandbox is held still, before it is and after it is not.
    pub async fn set_still(&self, id: &SandboxId, still: Stillness) -> Result<(), HostError> {
        self.change(id, move |record| record.still = still).await
    }

    /// A place for the memory image of a sandbox that is about to be paused. Not there yet: the engine makes it.
    pub async fn make_capture(&self, id: &SandboxId, name: &str) -> Result<PathBuf, HostError> {
        let (inner, id, name) = (self.inner.clone(), id.clone(), name.to_owned());
        blocking(move || Ok(inner.make_capture(&id, &name)?.join(MEMORY))).await
    }

    /// Adds the disk to a capture; the sandbox must stand still.
    pub async fn capture_disk(&self, id: &SandboxId, name: &str) -> Result<(), HostError> {
        let (inner, id, name) = (self.inner.clone(), id.clone(), name.to_owned());
        blocking(move || inner.pool.capture(&id, &inner.places.capture(&id, &name))).await
    }

    /// Removes captures that came to nothing.
    pub async fn drop_captures(&self, id: &SandboxId) -> Result<(), HostError> {
        let (inner, id) = (self.inner.clone(), id.clone());
        blocking(move || crate::pausing::remove_captures(&inner.places, &inner.pool, &id)).await
    }

    /// Pauses a sandbox: from here on it is on disk alone. `capture` names one with an image of its memory.
    pub async fn rest(&self, id: &SandboxId, capture: Option<&str>) -> Result<(), HostError> {
        let (inner, id, capture) = (self.inner.clone(), id.clone(), capture.map(str::to_owned));
        blocking(move || inner.rest(&id, capture)).await
    }

    /// Gives a paused sandbox what it needs for its next run. It is paused until [`Host::commit`].
    pub async fn wake(&self, id: &SandboxId, execution: &ExecutionId) -> Result<Reservation, HostError> {
        let (inner, id, execution) = (self.inner.clone(), id.clone(), execution.clone());
        blocking(move || inner.wake(&id, &execution)).await
    }

    /// Undoes [`Host::wake`]: the sandbox is paused as it was before.
    pub async fn rest_again(&self, id: &SandboxId) -> Result<(), HostError> {
        let (inner, id) = (self.inner.clone(), id.clone());
        blocking(move || inner.rest_again(&id)).await
    }

    /// Turns a sandbox into a paused one with the state of one of its snapshots. `name` must not have been used for it before.
    pub async fn roll_back(&self, id: &SandboxId, snapshot: &SnapshotId, name: &ExecutionId) -> Result<(), HostError> {
        let (inner, id, snapshot, name) = (self.inner.clone(), id.clone(), snapshot.clone(), name.clone());
        blocking(move || inner.roll_back(&id, &snapshot, &name)).await
    }
}

impl Inner {
    /// From intent to whole, or nothing.
    fn whole_snapshot(
        &self,
        id: &SandboxId,
        snapshot: &SnapshotId,
        with_memory: bool,
        copy: impl FnOnce(&Draft) -> Result<Duration, HostError>,
    ) -> Result<Snapshot, HostError> {
        let draft = self.begin_snapshot(id, snapshot, with_memory)?;
        let made = copy(&draft).and_then(|stood_still| self.finish_snapshot(draft, stood_still));
        if made.is_err()
            && let Err(error) = self.remove_snapshot(snapshot)
        {
            tracing::error!(snapshot = %snapshot, %error, "a snapshot that failed could not be removed; it is when the host is next opened");
        }
        made
    }

    /// Says how long the sandbox stood still.
    fn copy_files(&self, id: &SandboxId, draft: &Draft) -> Result<Duration, HostError> {
        let cgroup = self.tree.group(id.as_str());
        let failed = |operation| move |source| HostError::Cgroup { operation, id: id.clone(), source };
        if cgroup.is_frozen().map_err(failed("look at"))? {
            return self.pool.capture(id, &draft.capture).map(|()| Duration::ZERO);
        }
        self.write_still(id, Stillness::Frozen)?;
        let began = Instant::now();
        let copied = cgroup.freeze().map_err(failed("freeze")).and_then(|()| self.pool.capture(id, &draft.capture));
        cgroup.thaw().map_err(failed("thaw"))?;
        let stood_still = began.elapsed();
        self.write_still(id, Stillness::Going)?;
        copied.map(|()| stood_still)
    }

    fn copy_paused(&self, id: &SandboxId, draft: &Draft, with_memory: bool) -> Result<Duration, HostError> {
        let record = self.existing(id)?;
        let (RecordState::Paused, Some(paused)) = (record.state, record.paused) else {
            return Err(HostError::WrongState { id: id.clone(), state: "it is not paused" });
        };
        let copied = match paused.capture {
            // What it goes on from, which its disk may not be.
            Some(name) if with_memory || paused.fresh_disk => {
                let copied = self.pool.copy_capture(&self.places.capture(id, &name), &draft.capture, with_memory);
                copied.map_err(|source| HostError::Snapshot { operation: "copy", id: draft.snapshot.id.clone(), source })
            }
            _ => self.pool.capture(id, &draft.capture),
        };
        copied.map(|()| Duration::ZERO)
    }

    fn write_still(&self, id: &SandboxId, still: Stillness) -> Result<(), HostError> {
        let _turn = self.busy.wait_for(id);
        let mut record = self.existing(id)?;
        record.still = still;
        records::write(&self.places, &record)
    }
}
