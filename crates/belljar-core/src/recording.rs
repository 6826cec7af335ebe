//! What is written down, and what happens if it cannot be.
//!
//! What changes something is recorded before it is done and waited for; how it ended is handed over without waiting. If the log takes nothing,
//! new work is refused where the operator said so (`audit_required`), and goes on with an error in the log otherwise. Ending a sandbox is never
//! refused: a full disk must not keep one alive.

use std::sync::Arc;
use std::time::Duration;

use belljar_ports::{Audit, AuditError, AuditPage, AuditQuery, AuditVerdict, Checkpoint};
use belljar_types::{Actor, AuditAction, AuditEvent, Phase, ProjectId, SandboxId, Scope};
use tokio_util::task::TaskTracker;
use tracing::error;

use crate::{Caller, CoreError, Service, asking, chain};

/// The log, and how much depends on it.
#[derive(Clone)]
pub(crate) struct Recorder {
    log: Arc<dyn Audit>,
    required: bool,
    unfinished: TaskTracker,
}

impl Recorder {
    pub(crate) fn new(log: Arc<dyn Audit>, required: bool, unfinished: TaskTracker) -> Self {
        Self { log, required, unfinished }
    }

    /// Writes down what is about to be done. If that is not possible and must be, it is not to be done.
    pub(crate) async fn intend(&self, event: AuditEvent) -> Result<(), AuditError> {
        match self.log.record(event).await {
            Ok(_) => Ok(()),
            Err(failure) if self.required => Err(failure),
            Err(failure) => {
                error!(error = chain(&failure), "going on without a record, as audit.required = false says");
                Ok(())
            }
        }
    }

    /// Writes down what will be done in any case.
    pub(crate) async fn tell(&self, event: AuditEvent) {
        // The log has said why in the server's own log.
        let _unwritten = self.log.record(event).await;
    }

    /// Hands over what has happened.
    pub(crate) async fn note(&self, event: AuditEvent) {
        if let Err(failure) = self.log.note(event).await {
            error!(error = chain(&failure), "an event was not written to the audit log");
        }
    }

    /// Does what is left to be done for the log while whoever asked goes on. A server that is stopped waits for it.
    pub(crate) fn later(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.unfinished.spawn(work);
    }
}

/// Whoever asks, as the log names them.
pub(crate) fn actor(caller: &Caller) -> Actor {
    Actor { key: Some(caller.key.clone()), request: asking::request() }
}

/// Something that a caller does.
pub(crate) fn event(caller: &Caller, sandbox: Option<&SandboxId>, action: AuditAction) -> AuditEvent {
    AuditEvent { project: caller.project.clone(), sandbox: sandbox.cloned(), actor: actor(caller), action }
}

/// The word of the log for what an owner is asked to do.
pub(crate) fn word_for(verb: &'static str) -> &'static str {
    match verb.split(' ').next() {
        Some("take") => "snapshot",
        Some("roll") => "rollback",
        Some(word) => word,
        None => verb,
    }
}

/// What is written down of one thing: before it is done, and one of two after.
pub(crate) struct Told {
    pub(crate) intent: AuditEvent,
    pub(crate) done: AuditEvent,
    pub(crate) failed: AuditEvent,
}

impl Told {
    pub(crate) fn new(caller: &Caller, sandbox: Option<&SandboxId>, action: impl Fn(Phase) -> AuditAction) -> Self {
        let event = |phase| event(caller, sandbox, action(phase));
        Self { intent: event(Phase::Intent), done: event(Phase::Done), failed: event(Phase::Failed) }
    }
}

impl Service {
    /// Does something that is written down before and after, also if whoever asked has gone.
    pub(crate) async fn recorded<T: Send + 'static>(
        &self,
        caller: &Caller,
        sandbox: Option<&SandboxId>,
        action: impl Fn(Phase) -> AuditAction,
        work: impl Future<Output = Result<T, CoreError>> + Send + 'static,
    ) -> Result<T, CoreError> {
        let told = Told::new(caller, sandbox, action);
        let shared = Arc::clone(&self.shared);
        asking::to_the_end(async move {
            let _unfinished = shared.unfinished.token();
            shared.audit.intend(told.intent).await?;
            let result = work.await;
            shared.audit.note(if result.is_ok() { told.done } else { told.failed }).await;
            result
        })
        .await
    }

    /// The project whose log is asked for: the caller's own, or any for an administrator.
    async fn log_of(&self, caller: &Caller, project: Option<&ProjectId>) -> Result<ProjectId, CoreError> {
        caller.require(Scope::Read)?;
        match project {
            Some(project) if *project != caller.project => Ok(self.project(caller, project).await?.id),
            _ => Ok(caller.project.clone()),
        }
    }

    /// Events of a project, oldest first. If there is none yet, waits for one, at most this long.
    pub async fn audit(
        &self,
        caller: &Caller,
        project: Option<&ProjectId>,
        query: &AuditQuery,
        wait: Duration,
    ) -> Result<AuditPage, CoreError> {
        let project = self.log_of(caller, project).await?;
        let page = self.shared.audit.log.read(&project, query).await?;
        if !page.records.is_empty() || page.more || wait.is_zero() {
            return Ok(page);
        }
        self.shared.audit.log.wait(&project, page.looked_until, wait).await?;
        Ok(self.shared.audit.log.read(&project, query).await?)
    }

    /// The last signed word about a project's log.
    pub async fn audit_checkpoint(&self, caller: &Caller, project: Option<&ProjectId>) -> Result<Option<Checkpoint>, CoreError> {
        let project = self.log_of(caller, project).await?;
        Ok(self.shared.audit.log.checkpoint(&project).await?)
    }

    /// Whether a project's log is as it was written.
    pub async fn verify_audit(&self, caller: &Caller, project: Option<&ProjectId>) -> Result<AuditVerdict, CoreError> {
        let project = self.log_of(caller, project).await?;
        Ok(self.shared.audit.log.verify(&project).await?)
    }
}
