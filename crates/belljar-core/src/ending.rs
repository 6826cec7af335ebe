//! The end of a sandbox, as its owner brings it about: written down, done, and written down again.
//!
//! Destroying is tried until it works, because a sandbox that cannot be removed must not be forgotten; recording is not, because the next
//! start comes to the same end.

use std::sync::Arc;
use std::time::Duration;

use belljar_ports::{Runtime, RuntimeError, StoreError};
use belljar_types::{AuditAction, EndCause, EndReason, Phase, Sandbox, SandboxEnd, SandboxId, SandboxState, Timestamp};
use tracing::{error, info, warn};

use crate::chain;
use crate::owner::{Order, Owner, Reply};

const FIRST_RETRY: Duration = Duration::from_millis(200);
const LAST_RETRY: Duration = Duration::from_secs(30);

impl Owner {
    /// Ends the sandbox and tells everybody who waits for it.
    pub(crate) async fn end(mut self, cause: EndCause, detail: String, reply: Option<Reply<Arc<Sandbox>>>) {
        let _unfinished = self.shared.unfinished.token();
        let mut waiting: Vec<Reply<Arc<Sandbox>>> = reply.into_iter().collect();
        let (was_running, was_made) = (self.is_running(), self.sandbox.state != SandboxState::Creating);
        let end = SandboxEnd { cause, detail, at: Timestamp::now() };
        if self.sandbox.state != SandboxState::Stopping
            && let Err(error) = self.advance(SandboxState::Stopping, |sandbox| sandbox.end = Some(end.clone())).await
        {
            if let StoreError::Fenced { .. } = error {
                return self.leave(error, waiting);
            }
            // A full disk must not keep a sandbox alive; a restart would find it gone and say so.
            warn!(sandbox = %self.sandbox.id, error = chain(&error), "could not record that a sandbox is being ended; ending it all the same");
            self.sandbox.end = Some(end);
        }
        self.shared.shut_in(&self.sandbox.id);
        if was_made {
            self.read_meter_last(was_running).await;
        }
        self.destroy(&mut waiting).await;
        let cause = self.sandbox.end.as_ref().map_or(cause, |end| end.cause);
        let last = if matches!(cause, EndCause::OutOfMemory | EndCause::Lost | EndCause::NotMade) {
            SandboxState::Failed
        } else {
            SandboxState::Stopped
        };
        self.shared.counters.ended(cause);
        let detail = self.sandbox.end.as_ref().map(|end| end.detail.clone()).unwrap_or_default();
        self.note(AuditAction::lifecycle("end", Phase::Done, [("cause", cause.as_str().to_owned()), ("detail", detail)])).await;
        let gone = Arc::new(Sandbox { state: last, ..self.sandbox.clone() });
        self.appear(Arc::clone(&gone));
        let recorded = self.record_end(last).await;
        self.shared.remove(&self.sandbox.id);
        self.place = None;
        if recorded {
            info!(sandbox = %gone.id, project = %gone.project, cause = ?cause, "sandbox ended");
        }
        self.orders.close();
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::Kill(reply) => waiting.push(reply),
                Order::Change(_, reply) | Order::Pause(_, reply) | Order::Resume(_, reply) | Order::RollBack(_, reply) => drop(reply),
                Order::Snapshot(_, reply) => drop(reply),
                Order::ReadMeter(reply) => drop(reply),
            }
        }
        for reply in waiting {
            let _gone = reply.send(Ok(Arc::clone(&gone)));
        }
    }

    /// Another server has taken over: the sandbox is its now, and nothing may happen to it here.
    fn leave(self, fenced: StoreError, waiting: Vec<Reply<Arc<Sandbox>>>) {
        warn!(sandbox = %self.sandbox.id, error = chain(&fenced), "leaving a sandbox to the server that took over");
        self.shared.remove(&self.sandbox.id);
        if let Some(reply) = waiting.into_iter().next() {
            let _gone = reply.send(Err(fenced.into()));
        }
    }

    async fn destroy(&mut self, waiting: &mut Vec<Reply<Arc<Sandbox>>>) {
        let mut pause = FIRST_RETRY;
        while let Err(failure) = self.runtime.destroy(&self.sandbox.id).await {
            error!(sandbox = %self.sandbox.id, error = chain(&failure), retry_in = ?pause, "could not remove a sandbox; trying again");
            if let Some(reply) = waiting.pop() {
                let _gone = reply.send(Err(failure.into()));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LAST_RETRY);
        }
    }

    async fn record_end(&mut self, last: SandboxState) -> bool {
        let mut pause = FIRST_RETRY;
        loop {
            match self.advance(last, |_| {}).await {
                Ok(()) => return true,
                Err(StoreError::Fenced { .. } | StoreError::Conflict { .. }) => return false,
                // The sandbox is gone and has said so; a restart would come to the same end. One more try helps a database that is restarted.
                Err(error) if pause > Duration::from_secs(1) => {
                    error!(sandbox = %self.sandbox.id, error = chain(&error), "could not record the end of a sandbox; the next start will");
                    return false;
                }
                Err(_) => tokio::time::sleep(pause).await,
            }
            pause *= 2;
        }
    }
}

/// Waits for the engine's word that a sandbox is no longer running. An engine that cannot tell is asked again.
pub(crate) async fn wait_for_end(runtime: Arc<dyn Runtime>, id: SandboxId) -> (EndCause, String) {
    let mut pause = FIRST_RETRY;
    loop {
        match runtime.ended(&id).await {
            Ok(EndReason::Killed) => return (EndCause::Lost, "something other than the server ended it".to_owned()),
            Ok(reason) => return (reason.into(), reason.to_string()),
            Err(RuntimeError::NotFound { .. }) => return (EndCause::Lost, "the engine no longer knows it".to_owned()),
            Err(failure) => {
                error!(sandbox = %id, error = chain(&failure), retry_in = ?pause, "could not wait for a sandbox's end");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LAST_RETRY);
            }
        }
    }
}
