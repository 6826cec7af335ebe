//! Snapshots and roll-backs, as an owner does them: the sandbox it owns changes under nobody else's hands meanwhile.
//!
//! ```text
//!   enter (making) ─► engine.snapshot ─► record (whole) ─► answer         a fork's stays "making": nobody is to see it
//!   record (resuming) ─► engine.rollback ─► record (running)   what is half done is found as paused, in the snapshot's state
//! ```

use std::sync::Arc;
use std::time::Duration;

use belljar_ports::{SnapshotKind, StoreError};
use belljar_types::{
    ExecutionId, Pause, PausedMemory, Sandbox, SandboxState, Snapshot, SnapshotId, SnapshotName, SnapshotPurpose, SnapshotState, Timestamp,
};
use tracing::{info, warn};

use crate::metering::Write;
use crate::owner::Owner;
use crate::{CoreError, chain};

/// A snapshot to take.
pub(crate) struct Taking {
    pub(crate) name: Option<SnapshotName>,
    /// What to keep; as much as can be when unset.
    pub(crate) kind: Option<SnapshotKind>,
    pub(crate) purpose: SnapshotPurpose,
    pub(crate) lifetime: Option<Duration>,
}

impl Owner {
    /// Takes a snapshot. If that fails, the sandbox is as before and nothing is left.
    pub(crate) async fn take_snapshot(&mut self, taking: Taking) -> Result<Snapshot, CoreError> {
        let _unfinished = self.shared.unfinished.token();
        let mut snapshot = self.draft(taking);
        self.noted(self.shared.store.enter_snapshot(self.shared.epoch, &snapshot).await)?;
        let taken = match self.runtime.snapshot(&self.sandbox.id, &snapshot.id, snapshot.kind).await {
            Ok(taken) => taken,
            Err(failure) => {
                self.shared.drop_snapshot(&self.runtime, &snapshot.id).await;
                return Err(failure.into());
            }
        };
        snapshot.bytes = taken.bytes;
        snapshot.stood_still = taken.stood_still;
        if snapshot.purpose != SnapshotPurpose::Kept {
            return Ok(snapshot);
        }
        snapshot.state = SnapshotState::Whole;
        match self.noted(self.shared.store.record_snapshot(self.shared.epoch, SnapshotState::Making, &snapshot).await) {
            Ok(()) => {}
            // The server that took over finishes it or undoes it.
            Err(error @ StoreError::Fenced { .. }) => return Err(error.into()),
            Err(error) => {
                self.shared.drop_snapshot(&self.runtime, &snapshot.id).await;
                return Err(error.into());
            }
        }
        if snapshot.expires_at.is_some() {
            self.shared.expiries.notify_one();
        }
        if let Err(error) = self.advance(self.sandbox.state, |sandbox| sandbox.last_snapshot = Some(snapshot.id.clone())).await {
            warn!(sandbox = %self.sandbox.id, error = chain(&error), "could not write down which snapshot a sandbox took last");
        }
        info!(sandbox = %snapshot.source, snapshot = %snapshot.id, project = %snapshot.project, bytes = snapshot.bytes, "snapshot taken");
        Ok(snapshot)
    }

    fn draft(&self, taking: Taking) -> Snapshot {
        let sandbox = &self.sandbox;
        let now = Timestamp::now();
        let memory_is_there = sandbox.pause.is_none_or(|pause| pause.memory != PausedMemory::Lost);
        let most =
            if self.runtime.capabilities().snapshot_memory && memory_is_there { SnapshotKind::Memory } else { SnapshotKind::Filesystem };
        Snapshot {
            id: SnapshotId::random(),
            project: sandbox.project.clone(),
            name: taking.name,
            state: SnapshotState::Making,
            purpose: taking.purpose,
            kind: taking.kind.unwrap_or(most),
            class: sandbox.class,
            source: sandbox.id.clone(),
            parent: sandbox.last_snapshot.clone(),
            root: sandbox.root().clone(),
            template: sandbox.template.clone(),
            spec: sandbox.spec.clone(),
            metadata: sandbox.metadata.clone(),
            idle_timeout: sandbox.idle_timeout,
            on_timeout: sandbox.on_timeout,
            auto_resume: sandbox.auto_resume,
            bytes: 0,
            stood_still: Duration::ZERO,
            created_at: now,
            expires_at: taking.lifetime.map(|lifetime| now.plus(lifetime)),
        }
    }

    /// Puts the sandbox back to one of its snapshots; it then runs. If that fails, it is as before, or paused in the snapshot's state.
    pub(crate) async fn roll_back(&mut self, to: &Snapshot) -> Result<Arc<Sandbox>, CoreError> {
        let _unfinished = self.shared.unfinished.token();
        let place = match self.place {
            Some(_) => None,
            None => Some(self.shared.admission.admit(&self.sandbox.spec.limits)?),
        };
        let (was_running, before, paused_before) =
            (self.sandbox.state == SandboxState::Running, self.sandbox.execution().clone(), self.sandbox.pause);
        if was_running {
            self.read_meter(Write::Now).await;
        }
        self.refuse_over_budget()?;
        let memory = if to.kind == SnapshotKind::Memory { PausedMemory::OnDisk } else { PausedMemory::Lost };
        let pause = Pause { since: paused_before.map_or_else(Timestamp::now, |pause| pause.since), memory };
        let run = ExecutionId::random();
        self.advance(SandboxState::Resuming, |sandbox| {
            sandbox.pause = Some(pause);
            sandbox.spec.execution = run.clone();
        })
        .await?;
        match self.runtime.rollback(&self.sandbox.id, &to.id, &run).await {
            Ok(execution) => {
                self.sandbox.last_snapshot = Some(to.id.clone());
                self.set_going(execution, None, place).await?;
                info!(sandbox = %self.sandbox.id, snapshot = %to.id, project = %self.sandbox.project, "sandbox rolled back");
                Ok(Arc::new(self.sandbox.clone()))
            }
            Err(failure) => {
                // Only one that ran can be found running; asking for the agent of one that stands still would wait for nothing.
                let unchanged = if was_running { self.runtime.adopt(&self.sandbox.id).await.ok() } else { None };
                match unchanged {
                    Some(execution) => self.run_again(execution.id, None).await?,
                    None => {
                        let pause = paused_before.unwrap_or(pause);
                        self.advance(SandboxState::Paused, |sandbox| {
                            sandbox.spec.execution = before;
                            sandbox.pause = Some(pause);
                        })
                        .await?;
                        if pause.memory != PausedMemory::Resident {
                            self.place = None;
                        }
                    }
                }
                Err(failure.into())
            }
        }
    }

    fn noted<T>(&self, written: Result<T, StoreError>) -> Result<T, StoreError> {
        written.inspect_err(|error| self.shared.note(error))
    }
}
