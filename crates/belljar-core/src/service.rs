//! The service: every verb a front may ask for. It checks who asks and what for, and leaves each sandbox to its owner.

use std::sync::Arc;
use std::time::Duration;

use belljar_ports::{
    Audit, Blobs, Capacity, Courier, Egress, Page, PageRequest, Parcels, Runtime, SandboxFilter, Secrets, Store, StoreError, Tallies,
    Tapes, Templates, Volumes,
};
use belljar_types::{AuditAction, EngineReport, PauseKind, Phase, Sandbox, SandboxId, SandboxState, Scope, Usage};
use tokio::sync::oneshot;
use tracing::warn;

use crate::caller::Keys;
use crate::metering::Meters;
use crate::owner::{Order, Reply};
use crate::recorded::{Recorded, Witness};
use crate::recording::{Told, event, word_for};
use crate::request::{Lease, SandboxChange};
use crate::shared::{Engine, Handle, Shared};
use crate::taping::Taping;
use crate::{Caller, CoreError, Denied, ServiceConfig, Session, Statistics, asking, boundary, recovery};

/// What a service is built from.
pub struct Parts {
    /// What it remembers.
    pub store: Arc<dyn Store>,
    /// What makes sandboxes.
    pub engines: Vec<Arc<dyn Runtime>>,
    /// What they are made from.
    pub templates: Arc<dyn Templates>,
    /// Storage that outlives them.
    pub volumes: Arc<dyn Volumes>,
    /// Where artifacts are kept.
    pub blobs: Arc<dyn Blobs>,
    /// Snapshots as streams of bytes.
    pub parcels: Arc<dyn Parcels>,
    /// How much the host can hold.
    pub capacity: Arc<dyn Capacity>,
    /// What only the server counts.
    pub tallies: Arc<dyn Tallies>,
    /// What carries messages to webhooks.
    pub courier: Arc<dyn Courier>,
    /// Where what happens is written down.
    pub audit: Arc<dyn Audit>,
    /// Where terminals are recorded; without it they are not.
    pub tapes: Option<Arc<dyn Tapes>>,
    /// What lets them out; without it no policy with a network is taken.
    pub egress: Option<Arc<dyn Egress>>,
    /// Who keeps the secrets that are added to their requests.
    pub secrets: Option<Arc<dyn Secrets>>,
    /// What the operator decided.
    pub config: ServiceConfig,
}

/// Why a service did not start. Nothing was changed on the host.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store could not be used.
    #[error("start a new epoch in the store")]
    Store(#[from] StoreError),
}

/// The waist of the hourglass.
pub struct Service {
    pub(crate) shared: Arc<Shared>,
    pub(crate) keys: Arc<Keys>,
}

impl Service {
    /// Probes the engines, takes over the store, and brings what is on the host and what is in the store together.
    pub async fn start(parts: Parts) -> Result<Arc<Self>, StartError> {
        let mut engines = Vec::new();
        for runtime in &parts.engines {
            let report = runtime.probe().await;
            engines.push(Engine { runtime: Arc::clone(runtime), report });
        }
        let epoch = parts.store.begin_epoch().await?;
        let meters = Meters::load(&*parts.store, Arc::clone(&parts.tallies)).await?;
        let shared = Arc::new(Shared::new(parts, engines, meters, epoch));
        if let Some(events) = shared.egress.as_ref().and_then(|egress| egress.events()) {
            tokio::spawn(boundary::watch(events, shared.audit.clone()));
        }
        recovery::recover(&shared).await?;
        let service = Arc::new(Self { shared, keys: Arc::default() });
        service.give_up_builds().await;
        Ok(service)
    }

    /// Takes no new work and waits for makings and endings under way, at most `drain`. Sandboxes live on.
    pub async fn stop(&self, drain: Duration) {
        self.shared.stop();
        self.shared.unfinished.close();
        if tokio::time::timeout(drain, self.shared.unfinished.wait()).await.is_err() {
            warn!(left = self.shared.unfinished.len(), "stopped before all work was done; the next start will finish it");
        }
    }

    /// Waits until another server has taken over the store: this one must end then.
    pub async fn fenced(&self) -> StoreError {
        self.shared.fenced().await
    }

    /// Recognises whoever presents a key.
    pub async fn authenticate(&self, presented: &str) -> Result<Caller, Denied> {
        self.keys.recognise(&*self.shared.store, presented).await
    }

    /// A sandbox of the caller's project, ended or not.
    pub async fn sandbox(&self, caller: &Caller, id: &SandboxId) -> Result<Arc<Sandbox>, CoreError> {
        caller.require(Scope::Read)?;
        match self.handle(caller, id) {
            Some(handle) => Ok(Arc::clone(&handle.view.borrow())),
            None => self.stored(&caller.project, id).await,
        }
    }

    /// All sandboxes that live, of every project, as they are now: from memory, for fronts that have to find out whose something is.
    pub fn live(&self, caller: &Caller) -> Result<Vec<Arc<Sandbox>>, CoreError> {
        caller.require(Scope::Admin)?;
        Ok(self.shared.views())
    }

    /// A page of the caller's project's sandboxes.
    pub async fn list(&self, caller: &Caller, filter: &SandboxFilter, page: &PageRequest) -> Result<Page, CoreError> {
        caller.require(Scope::Read)?;
        Ok(self.shared.store.list(&caller.project, filter, page).await?)
    }

    /// Ends a sandbox and answers how it is then. One that has ended already is answered as it is.
    pub async fn kill(&self, caller: &Caller, id: &SandboxId) -> Result<Arc<Sandbox>, CoreError> {
        caller.require(Scope::Use)?;
        if let Some(handle) = self.handle(caller, id) {
            self.shared.audit.tell(event(caller, Some(id), AuditAction::lifecycle("kill", Phase::Intent, []))).await;
            let (reply, answer) = oneshot::channel();
            if handle.orders.send(Order::Kill(reply)).await.is_ok()
                && let Ok(answer) = answer.await
            {
                return answer;
            }
        }
        self.ended_or_away(caller, id).await
    }

    /// Stops a sandbox where it stands. Its processes go on when it is resumed, or it boots anew on its files.
    pub async fn pause(&self, caller: &Caller, id: &SandboxId, kind: impl Into<PauseKind>) -> Result<Arc<Sandbox>, CoreError> {
        caller.require(Scope::Use)?;
        let kind = kind.into();
        self.order(caller, id, "pause it", |reply| Order::Pause(kind, reply)).await
    }

    /// Lets a paused sandbox go on, with what was left of its lease or with a new one. One that runs is left as it is.
    pub async fn resume(&self, caller: &Caller, id: &SandboxId, lease: Option<Duration>) -> Result<Arc<Sandbox>, CoreError> {
        caller.require(Scope::Use)?;
        let change = SandboxChange { lease: lease.map(Lease::FromNow), ..SandboxChange::default() };
        change.validate(&self.shared.config)?;
        self.order(caller, id, "resume it", |reply| Order::Resume(lease, reply)).await
    }

    /// Asks the owner of a sandbox for something; whoever asks about one that has ended is told so.
    pub(crate) async fn order<T: Send + 'static>(
        &self,
        caller: &Caller,
        id: &SandboxId,
        verb: &'static str,
        order: impl FnOnce(Reply<T>) -> Order,
    ) -> Result<T, CoreError> {
        if let Some(handle) = self.handle(caller, id) {
            let word = word_for(verb);
            let told = Told::new(caller, Some(id), |phase| AuditAction::lifecycle(word, phase, []));
            let (reply, answer) = oneshot::channel();
            let (shared, order) = (Arc::clone(&self.shared), order(reply));
            let done = asking::to_the_end(async move {
                shared.audit.intend(told.intent).await?;
                if handle.orders.send(order).await.is_err() {
                    return Ok(None);
                }
                let Ok(answer) = answer.await else { return Ok(None) };
                shared.audit.note(if answer.is_ok() { told.done } else { told.failed }).await;
                answer.map(Some)
            });
            if let Some(done) = done.await? {
                return Ok(done);
            }
        }
        let sandbox = self.ended_or_away(caller, id).await?;
        Err(ended(&sandbox, verb))
    }

    /// The agent of a sandbox; waits while it is being made, paused or resumed, and resumes it if it is one that does so by itself.
    pub async fn open(&self, caller: &Caller, id: &SandboxId) -> Result<Session, CoreError> {
        caller.require(Scope::Use)?;
        let Some(mut handle) = self.handle(caller, id) else {
            let sandbox = self.ended_or_away(caller, id).await?;
            return Err(ended(&sandbox, "use it"));
        };
        let settled = |sandbox: &Arc<Sandbox>| !sandbox.state.is_passing();
        let mut sandbox = match seen(&mut handle, settled).await {
            Some(sandbox) => sandbox,
            None => self.stored(&caller.project, id).await?,
        };
        if sandbox.state == SandboxState::Paused && sandbox.auto_resume {
            sandbox = self.resume(caller, id, None).await?;
        }
        match sandbox.state {
            SandboxState::Running => {
                let guest = handle.runtime.guest(id).await?;
                let unwritten = event(caller, Some(id), AuditAction::Log { detail: String::new() });
                let witness = Witness::new(self.shared.audit.clone(), unwritten, handle.told, handle.counts);
                let tapes = self.shared.tapes.clone();
                let taping = tapes.map(|tapes| Taping { tapes, project: caller.project.clone(), sandbox: id.clone() });
                Ok(Session::new(Arc::new(Recorded::new(guest, witness, taping)), handle.view, handle.activity))
            }
            _ => Err(ended(&sandbox, "use it")),
        }
    }

    /// What a sandbox used so far, as the host counts it.
    pub async fn usage(&self, caller: &Caller, id: &SandboxId) -> Result<Usage, CoreError> {
        caller.require(Scope::Read)?;
        match self.handle(caller, id) {
            Some(handle) => Ok(handle.runtime.usage(id).await?),
            None => Err(ended(&*self.ended_or_away(caller, id).await?, "measure it")),
        }
    }

    /// What the engines' probes found at start.
    pub fn reports(&self) -> Vec<EngineReport> {
        self.shared.engines.iter().map(|engine| engine.report.clone()).collect()
    }

    /// The operator's settings.
    pub fn config(&self) -> &ServiceConfig {
        &self.shared.config
    }

    /// Counters and gauges.
    pub fn statistics(&self) -> Statistics {
        self.shared.counters.snapshot(self.shared.views().iter().map(|sandbox| (sandbox.class, sandbox.state)))
    }

    /// Whether the service can do its work: the store answers and new work is taken.
    pub async fn ready(&self) -> Result<(), CoreError> {
        self.shared.refuse_if_stopping()?;
        Ok(self.shared.store.check().await?)
    }

    /// The owner of a live sandbox, if it is the caller's.
    pub(crate) fn handle(&self, caller: &Caller, id: &SandboxId) -> Option<Handle> {
        self.shared.handle(id).filter(|handle| handle.view.borrow().project == caller.project)
    }

    pub(crate) async fn stored(&self, project: &belljar_types::ProjectId, id: &SandboxId) -> Result<Arc<Sandbox>, CoreError> {
        let sandbox = self.shared.store.sandbox(project, id).await?.ok_or_else(|| CoreError::NoSandbox { id: id.clone() })?;
        Ok(Arc::new(sandbox))
    }

    /// A sandbox that nobody owns: it has ended, or its engine is away and it is left alone.
    pub(crate) async fn ended_or_away(&self, caller: &Caller, id: &SandboxId) -> Result<Arc<Sandbox>, CoreError> {
        let sandbox = self.stored(&caller.project, id).await?;
        if sandbox.state.has_ended() {
            return Ok(sandbox);
        }
        let reason = match self.shared.engine(sandbox.class) {
            None => "this server has no such engine".to_owned(),
            Some(engine) => match engine.report.first_failure() {
                Some(check) => format!("{}: {}", check.name, check.found),
                None => "it could not be taken over when the server started; see the log".to_owned(),
            },
        };
        Err(CoreError::EngineAway { id: id.clone(), class: sandbox.class, reason })
    }
}

/// The sandbox as soon as it is as asked; `None` if its owner went without saying how. The lock on what is seen is not held by the caller.
pub(crate) async fn seen(handle: &mut Handle, as_asked: impl FnMut(&Arc<Sandbox>) -> bool) -> Option<Arc<Sandbox>> {
    handle.view.wait_for(as_asked).await.ok().map(|sandbox| Arc::clone(&sandbox))
}

pub(crate) fn ended(sandbox: &Sandbox, verb: &'static str) -> CoreError {
    match &sandbox.end {
        Some(end) => CoreError::Ended { id: sandbox.id.clone(), end: end.clone() },
        None => CoreError::WrongState { id: sandbox.id.clone(), state: sandbox.state, verb },
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CreateSandbox;

    /// Fronts await the verbs on whichever thread is free: holding a look at a sandbox's view across a wait would forbid that. Compiling is the test.
    #[expect(dead_code, reason = "nothing is to be run")]
    fn verbs_may_be_awaited_on_any_thread(service: &Arc<Service>, caller: &Caller, id: &SandboxId) {
        fn sendable(_: impl Send) {}
        sendable(service.create(caller, CreateSandbox::default()));
        sendable(service.open(caller, id));
        sendable(service.kill(caller, id));
        sendable(service.update(caller, id, SandboxChange::default()));
        sendable(service.usage(caller, id));
    }
}
