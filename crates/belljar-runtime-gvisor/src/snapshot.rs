//! State that lasts: memory and files of one moment, written down while the sandbox stands still.
//!
//! ```text
//!   note "held" ─▶ runsc pause ─▶ runsc checkpoint ─▶ disk captured ─┬─▶ snapshot: runsc resume ─▶ note "going" ─▶ finish
//!                                                                    └─▶ pause: record "paused" ─▶ kill
//! ```
//! If we are cut short in between, the note tells whoever comes next that a sandbox which stands still is to go on. A checkpoint that
//! fails leaves the sandbox as it was. Before it, all of the host's connections to the agent are ended in good order, and the agent stops listening to
//! its processes: an epoll instance in which anything is ready or cut at a checkpoint is deaf after the restore (seen with runsc 20240729, in 11 of 12
//! tries with connections). In a restored sandbox every process goes on; its agent is told who it is now and gets a new secret, since
//! all sandboxes restored from one image begin with the same. Connections over the network are cut; those inside are not.

use std::sync::Arc;
use std::time::Instant;

use belljar_host::{Draft, HostError, Record, RecordState, Snapshot, Stillness};
use belljar_ports::{Guest, Presence, RuntimeError, SnapshotKind, SnapshotRecord};
use belljar_types::{EndReason, Execution, ExecutionId, PauseKind, SandboxId, SnapshotId};

use tokio::sync::OwnedRwLockWriteGuard;

use crate::create;
use crate::errors::{EngineError, from_host};
use crate::find::execution;
use crate::runtime::{Inner, blocking};

const HOLD: &str = "hold the sandbox still";
const PAUSE: &str = "pause";
const SNAPSHOT: &str = "take a snapshot";

pub(crate) async fn pause(inner: &Arc<Inner>, id: &SandboxId, kind: PauseKind) -> Result<(), RuntimeError> {
    let (makings, inner, id) = (Arc::clone(&inner.makings), Arc::clone(inner), id.clone());
    makings
        .alone(&id.clone(), |_| async move {
            let record = inner.running(&id, PAUSE).await?;
            let capture = record.execution.as_str();
            match kind {
                PauseKind::Filesystem => inner.host.rest(&id, None).await.map_err(|error| from_host(error, PAUSE, &id))?,
                PauseKind::Memory => inner.write_to_disk(&record, capture).await?,
                PauseKind::Standby => return inner.set_frozen(&record, true, PAUSE).await,
            }
            inner.lives().remove(&id);
            Ok(())
        })
        .await
}

pub(crate) async fn resume(inner: &Arc<Inner>, id: &SandboxId, run: &ExecutionId) -> Result<Execution, RuntimeError> {
    let (makings, inner, id, run) = (Arc::clone(&inner.makings), Arc::clone(inner), id.clone(), run.clone());
    makings
        .alone(&id.clone(), |making| async move {
            let record = inner.known(&id, "resume").await?;
            if record.state == RecordState::Running {
                // It was never on disk, or is back already.
                inner.set_frozen(&record, false, "resume").await?;
                return Ok(execution(&record));
            }
            create::bring_back(&inner, &id, &run, &making).await
        })
        .await
}

pub(crate) async fn snapshot(
    inner: &Arc<Inner>,
    id: &SandboxId,
    snapshot: &SnapshotId,
    kind: SnapshotKind,
) -> Result<SnapshotRecord, RuntimeError> {
    let (makings, inner, id, snapshot) = (Arc::clone(&inner.makings), Arc::clone(inner), id.clone(), snapshot.clone());
    let taken = makings
        .alone(&id.clone(), |_| async move {
            let with_memory = kind == SnapshotKind::Memory;
            let record = inner.known(&id, SNAPSHOT).await?;
            if record.state == RecordState::Paused {
                let taken = inner.host.snapshot_paused(&id, &snapshot, with_memory).await;
                return taken.map_err(|error| from_host(error, SNAPSHOT, &id));
            }
            let stood_by = inner.is_on_standby(&record).await?;
            if !with_memory && stood_by {
                return inner.host.snapshot_files(&id, &snapshot).await.map_err(|error| from_host(error, SNAPSHOT, &id));
            }
            if stood_by {
                // Its memory is the sentry's to write down, which stands still as well.
                inner.set_frozen(&record, false, SNAPSHOT).await?;
            }
            let taken = inner.snapshot_running(&id, &snapshot, with_memory).await;
            if stood_by {
                inner.set_frozen(&record, true, SNAPSHOT).await?;
            }
            taken
        })
        .await?;
    Ok(taken.told())
}

pub(crate) async fn rollback(
    inner: &Arc<Inner>,
    id: &SandboxId,
    snapshot: &SnapshotId,
    run: &ExecutionId,
) -> Result<Execution, RuntimeError> {
    let (makings, inner, id) = (Arc::clone(&inner.makings), Arc::clone(inner), id.clone());
    let (snapshot, run) = (snapshot.clone(), run.clone());
    makings
        .alone(&id.clone(), |making| async move {
            inner.known(&id, "roll back").await?;
            inner.host.roll_back(&id, &snapshot, &run).await.map_err(|error| from_host(error, "roll back", &id))?;
            inner.lives().remove(&id);
            create::bring_back(&inner, &id, &run, &making).await
        })
        .await
}

impl Inner {
    /// The record of a sandbox that runs, and nothing else.
    async fn running(&self, id: &SandboxId, operation: &'static str) -> Result<Record, RuntimeError> {
        let record = self.known(id, operation).await?;
        let state = match (record.state, self.presence(&record).await?) {
            (RecordState::Running, Presence::Running(_)) => return Ok(record),
            (RecordState::Paused, _) => "it is paused",
            (_, Presence::Ended(_)) => "it has ended",
            (_, Presence::Frozen(_)) => "it stands by",
            _ => "it is being made or resumed",
        };
        Err(RuntimeError::WrongState { id: id.clone(), state: state.to_owned() })
    }

    async fn write_to_disk(&self, record: &Record, capture: &str) -> Result<(), RuntimeError> {
        let id = &record.id;
        let written = self.write_and_rest(record, capture).await;
        // The record decides: once it says "paused", it is.
        if written.is_err() && self.known(id, PAUSE).await?.state == RecordState::Running {
            self.host.drop_captures(id).await.map_err(|error| from_host(error, PAUSE, id))?;
        }
        written
    }

    async fn write_and_rest(&self, record: &Record, capture: &str) -> Result<(), RuntimeError> {
        let id = &record.id;
        let failed = |error: HostError| from_host(error, PAUSE, id);
        let image = self.host.make_capture(id, capture).await.map_err(failed)?;
        let shut = self.hang_up(record).await?;
        self.hold(id).await?;
        let written = async {
            self.checkpoint(id, image).await?;
            self.host.capture_disk(id, capture).await.map_err(failed)?;
            self.host.rest(id, Some(capture)).await.map_err(failed)
        };
        let written = written.await;
        if written.is_err() && self.known(id, PAUSE).await?.state == RecordState::Running {
            self.go_on(id, shut).await?;
        }
        written
    }

    async fn snapshot_running(&self, id: &SandboxId, snapshot: &SnapshotId, with_memory: bool) -> Result<Snapshot, RuntimeError> {
        let record = self.running(id, SNAPSHOT).await?;
        if !with_memory {
            return self.host.snapshot_files(id, snapshot).await.map_err(|error| from_host(error, SNAPSHOT, id));
        }
        let taken = self.snapshot_everything(&record, snapshot).await;
        if let Err(error) = &taken
            && !matches!(error, RuntimeError::SnapshotExists { .. })
            && let Err(error) = self.host.remove_snapshot(snapshot).await
        {
            tracing::error!(snapshot = %snapshot, %error, "a snapshot that failed could not be removed; it is when the host is next opened");
        }
        taken
    }

    async fn snapshot_everything(&self, record: &Record, snapshot: &SnapshotId) -> Result<Snapshot, RuntimeError> {
        let id = &record.id;
        let failed = |error: HostError| from_host(error, SNAPSHOT, id);
        let draft = self.host.begin_snapshot(id, snapshot).await.map_err(failed)?;
        let shut = self.hang_up(record).await?;
        let began = Instant::now();
        self.hold(id).await?;
        let written = async {
            self.checkpoint(id, draft.image()).await?;
            self.host.copy_disk(draft).await.map_err(failed)
        };
        let written: Result<Draft, RuntimeError> = written.await;
        let stood_still = self.go_on(id, shut).await?.duration_since(began);
        self.host.finish_snapshot(written?, stood_still).await.map_err(failed)
    }

    /// Lets a sandbox go on that was written down, and speaks to it; says when it went on. One that died meanwhile does not, and that is what is told.
    async fn go_on(&self, id: &SandboxId, shut: OwnedRwLockWriteGuard<()>) -> Result<Instant, RuntimeError> {
        let going = self.let_go(id).await;
        if going.is_err() && self.is_gone(id).await {
            self.host.set_still(id, Stillness::Going).await.map_err(|error| from_host(error, HOLD, id))?;
            return Err(self.dead(id));
        }
        going?;
        let at = Instant::now();
        self.break_silence(id, shut).await;
        Ok(at)
    }

    fn dead(&self, id: &SandboxId) -> RuntimeError {
        let reason = self.lives().get(id).map_or(EndReason::Exited, |live| live.end_reason());
        RuntimeError::Ended { id: id.clone(), reason, detail: self.files(id).last_words() }
    }

    async fn hang_up(&self, record: &Record) -> Result<OwnedRwLockWriteGuard<()>, RuntimeError> {
        let live = self.live(&record.id).await?;
        let shut = self.host.hang_up(record, &live.gate).await;
        shut.map_err(|source| RuntimeError::Agent { id: record.id.clone(), source })
    }

    /// The agent takes up what programs wrote when it is next spoken to.
    async fn break_silence(&self, id: &SandboxId, shut: OwnedRwLockWriteGuard<()>) {
        drop(shut);
        let spoken = async { self.live(id).await?.guest.hello().await.map_err(|source| RuntimeError::Agent { id: id.clone(), source }) };
        if let Err(error) = spoken.await {
            tracing::warn!(sandbox = %id, %error, "the agent of a sandbox that stood still does not answer");
        }
    }

    async fn hold(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        let runsc = self.runsc().await.map_err(|error| error.during(HOLD, id))?.clone();
        self.host.set_still(id, Stillness::Engine).await.map_err(|error| from_host(error, HOLD, id))?;
        let files = self.files(id);
        let held = blocking(move || runsc.hold(&files)).await;
        if held.is_err() {
            self.host.set_still(id, Stillness::Going).await.map_err(|error| from_host(error, HOLD, id))?;
            if self.is_gone(id).await {
                return Err(self.dead(id));
            }
        }
        held.map_err(|error| error.during(HOLD, id))
    }

    async fn checkpoint(&self, id: &SandboxId, image: std::path::PathBuf) -> Result<(), RuntimeError> {
        const OPERATION: &str = "write its memory to disk";
        let runsc = self.runsc().await.map_err(|error| error.during(OPERATION, id))?.clone();
        let files = self.files(id);
        let written = blocking(move || runsc.checkpoint(&files, &image)).await.map_err(|error| error.during(OPERATION, id));
        // What was dying while it was written down would go on dying when it is restored: that is nothing to promise.
        if self.is_gone(id).await { Err(self.dead(id)) } else { written }
    }

    /// Lets a sandbox go on that we or somebody who is gone held still.
    async fn let_go(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        const OPERATION: &str = "let the sandbox go on";
        let runsc = self.runsc().await.map_err(|error| error.during(OPERATION, id))?.clone();
        let files = self.files(id);
        blocking(move || runsc.let_go(&files)).await.map_err(|error| error.during(OPERATION, id))?;
        self.host.set_still(id, Stillness::Going).await.map_err(|error| from_host(error, OPERATION, id))
    }

    /// Lets a sandbox go on that was held by somebody who is gone.
    pub(crate) async fn release_if_held(&self, record: &Record) -> Result<(), RuntimeError> {
        if record.state != RecordState::Running || record.still != Stillness::Engine || self.makings.is_making(&record.id) {
            return Ok(());
        }
        tracing::warn!(sandbox = %record.id, "a sandbox was left standing still; it goes on");
        let Err(error) = self.let_go(&record.id).await else { return Ok(()) };
        // Whoever held it was cut short before it stood still; or it died so.
        let not_held = matches!(&error, RuntimeError::Host { source, .. } if source.downcast_ref().is_some_and(EngineError::is_not_held));
        if not_held || self.is_gone(&record.id).await {
            let going = self.host.set_still(&record.id, Stillness::Going).await;
            return going.map_err(|error| from_host(error, "let the sandbox go on", &record.id));
        }
        Err(error)
    }
}
