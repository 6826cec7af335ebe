//! Pause and resume, as an owner does them. Each way is written down before it is gone and again when it is done, so that whoever comes after
//! a crash knows that a sandbox which stands still is meant to.
//!
//! The lease does not run while a sandbox stands still: what was left of it is left when it goes on. A sandbox that is only on disk gives its
//! place in the host's memory back, and asks for one again when it is to go on.

use std::sync::Arc;
use std::time::Duration;

use belljar_ports::MemoryState;
use belljar_types::{
    AuditAction, EndCause, Execution, ExecutionId, OnTimeout, Pause, PauseKind, PausedMemory, Phase, Sandbox, SandboxState, Timestamp,
};
use tracing::{error, info};

use crate::admission::Place;
use crate::ending::wait_for_end;
use crate::metering::Write;
use crate::owner::{Next, Order, Owner, because, killed};
use crate::{CoreError, chain};

impl Owner {
    /// A lease or the time nobody used it has run out: the sandbox ends, or is paused if that was asked for.
    pub(crate) async fn run_out(&mut self, cause: EndCause) -> Next {
        let detail = because(cause, &self.sandbox);
        let kind = match self.sandbox.on_timeout {
            _ if !matches!(cause, EndCause::LeaseExpired | EndCause::Idle) => return Next::End(cause, detail, None),
            OnTimeout::Kill => return Next::End(cause, detail, None),
            OnTimeout::Pause if self.runtime.capabilities().pause.is_some() => PauseKind::Memory,
            OnTimeout::Pause | OnTimeout::PauseFiles => PauseKind::Filesystem,
        };
        match self.pause(kind).await {
            Ok(_) => {
                self.note(AuditAction::lifecycle("pause", Phase::Done, [("cause", cause.as_str().to_owned())])).await;
                Next::Again
            }
            Err(failure) => {
                error!(sandbox = %self.sandbox.id, error = chain(&failure), "could not pause a sandbox whose time ran out; ending it");
                Next::End(cause, format!("{detail}, and it could not be paused"), None)
            }
        }
    }

    /// Stops the sandbox. If that fails it runs as before.
    pub(crate) async fn pause(&mut self, kind: PauseKind) -> Result<Arc<Sandbox>, CoreError> {
        let _unfinished = self.shared.unfinished.token();
        let memory = match (kind, self.runtime.capabilities().pause) {
            (PauseKind::Filesystem, _) | (PauseKind::Memory, Some(MemoryState::Lost)) => PausedMemory::Lost,
            (PauseKind::Standby, _) | (PauseKind::Memory, Some(MemoryState::Resident)) => PausedMemory::Resident,
            // An engine that cannot keep it is asked all the same: its refusal says why.
            (PauseKind::Memory, Some(MemoryState::OnDisk) | None) => PausedMemory::OnDisk,
        };
        let pause = Pause { since: Timestamp::now(), memory };
        self.read_meter(Write::Now).await;
        self.advance(SandboxState::Pausing, |sandbox| sandbox.pause = Some(pause)).await?;
        if memory != PausedMemory::Resident {
            self.shared.shut_in(&self.sandbox.id);
        }
        if let Err(failure) = self.runtime.pause(&self.sandbox.id, kind).await {
            self.shared.let_out_again(&self.runtime, &self.sandbox).await;
            self.advance(SandboxState::Running, |sandbox| sandbox.pause = None).await?;
            return Err(failure.into());
        }
        self.read_meter(Write::Now).await;
        self.advance(SandboxState::Paused, |_| {}).await?;
        if memory != PausedMemory::Resident {
            self.place = None;
        }
        info!(sandbox = %self.sandbox.id, project = %self.sandbox.project, memory = ?memory, "sandbox paused");
        Ok(Arc::new(self.sandbox.clone()))
    }

    /// Owns a sandbox that stands still, until it goes on or ends.
    pub(crate) async fn own_paused(&mut self) -> Next {
        let resident = self.sandbox.pause.is_some_and(|pause| pause.memory == PausedMemory::Resident);
        let order = tokio::select! {
            order = self.orders.recv() => order,
            // What stands still in memory can be killed there; on disk nothing can.
            (cause, detail) = wait_for_end(Arc::clone(&self.runtime), self.sandbox.id.clone()), if resident => return self.ended(cause, detail),
        };
        match order {
            None => return Next::Gone,
            Some(Order::Kill(reply)) => return killed(reply),
            Some(Order::Change(change, reply)) => {
                let _gone = reply.send(self.change(change).await);
            }
            // It stands still already; what became of its memory is told in the answer.
            Some(Order::Pause(_, reply)) => {
                let _gone = reply.send(Ok(Arc::new(self.sandbox.clone())));
            }
            Some(Order::Resume(lease, reply)) => {
                let _gone = reply.send(self.go_on(lease).await);
            }
            Some(Order::Snapshot(taking, reply)) => {
                let _gone = reply.send(self.take_snapshot(taking).await);
            }
            Some(Order::RollBack(to, reply)) => {
                let _gone = reply.send(self.roll_back(&to).await);
            }
            // It was read when it was paused.
            Some(Order::ReadMeter(reply)) => drop(reply.send(())),
        }
        Next::Again
    }

    /// Takes up a sandbox that stands still and that another server paused.
    pub(crate) async fn stand_still(&mut self, memory: PausedMemory) -> Result<(), CoreError> {
        if self.sandbox.state != SandboxState::Paused {
            let since = self.sandbox.pause.map_or_else(Timestamp::now, |pause| pause.since);
            self.advance(SandboxState::Paused, |sandbox| sandbox.pause = Some(Pause { since, memory })).await?;
        }
        if memory != PausedMemory::Resident {
            self.place = None;
        }
        Ok(())
    }

    /// Lets the sandbox go on. If that fails it stands still as before.
    async fn go_on(&mut self, lease: Option<Duration>) -> Result<Arc<Sandbox>, CoreError> {
        let _unfinished = self.shared.unfinished.token();
        self.refuse_over_budget()?;
        let place = match self.place {
            Some(_) => None,
            None => Some(self.shared.admission.admit(&self.sandbox.spec.limits)?),
        };
        // The new run is in the store before it is on the host: whichever of the two a restart finds, it knows it.
        let before = self.sandbox.execution().clone();
        let run = ExecutionId::random();
        self.advance(SandboxState::Resuming, |sandbox| sandbox.spec.execution = run.clone()).await?;
        let execution = match self.runtime.resume(&self.sandbox.id, &run).await {
            Ok(execution) => execution,
            Err(failure) => {
                self.advance(SandboxState::Paused, |sandbox| sandbox.spec.execution = before).await?;
                return Err(failure.into());
            }
        };
        self.set_going(execution, lease, place).await?;
        info!(sandbox = %self.sandbox.id, project = %self.sandbox.project, "sandbox resumed");
        Ok(Arc::new(self.sandbox.clone()))
    }

    /// Lets it out, starts what its template starts if its processes were not kept, and records that it runs.
    pub(crate) async fn set_going(&mut self, execution: Execution, lease: Option<Duration>, place: Option<Place>) -> Result<(), CoreError> {
        self.shared.let_out_again(&self.runtime, &self.sandbox).await;
        if self.boots_anew()
            && let Err(failure) = self.start_up(&execution.id).await
        {
            // Its files are as they were, and it stands still with them; if not even that works, it runs without what it should have started.
            return match self.runtime.pause(&self.sandbox.id, PauseKind::Filesystem).await {
                Ok(()) => self.advance(SandboxState::Paused, |_| {}).await.map_or_else(|error| Err(error.into()), |()| Err(failure)),
                Err(unstopped) => {
                    error!(sandbox = %self.sandbox.id, error = chain(&unstopped), "could not pause a sandbox again that did not start");
                    self.place = self.place.take().or(place);
                    self.run_again(execution.id, lease).await.and(Err(failure))
                }
            };
        }
        self.place = self.place.take().or(place);
        self.run_again(execution.id, lease).await
    }

    /// Whether its processes were not kept, so that what its template starts is started again.
    pub(crate) fn boots_anew(&self) -> bool {
        self.has_start() && self.sandbox.pause.is_some_and(|pause| pause.memory == PausedMemory::Lost)
    }

    /// Records that a sandbox which stood still runs, with what was left of its lease or with a new one.
    pub(crate) async fn run_again(&mut self, run: ExecutionId, lease: Option<Duration>) -> Result<(), CoreError> {
        let now = Timestamp::now();
        self.advance(SandboxState::Running, |sandbox| {
            let clock = sandbox.lease_clock(now);
            let left = lease.or_else(|| sandbox.expires_at.map(|at| clock.until(at).max(MORE_THAN_NOTHING)));
            sandbox.spec.execution = run;
            if let Some(pause) = sandbox.pause.take().filter(|pause| pause.memory != PausedMemory::Resident) {
                sandbox.stood_still += pause.since.until(now);
            }
            sandbox.leased_at = now;
            sandbox.expires_at = left.map(|left| now.plus(left));
        })
        .await?;
        self.run_on();
        Ok(())
    }

    /// Winds up what stood still with the sandbox.
    pub(crate) fn run_on(&mut self) {
        self.activity.touch();
        self.restart_clock();
        self.wind_up(Duration::ZERO);
    }
}

/// What a sandbox gets that was paused because its lease had run out: long enough for whoever resumed it to set a new one.
const MORE_THAN_NOTHING: Duration = Duration::from_secs(60);
