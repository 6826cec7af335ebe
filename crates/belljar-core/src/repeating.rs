//! Requests that were sent before: they are answered with the sandbox that they made then.

use std::sync::Arc;

use belljar_ports::Once;
use belljar_types::{EndCause, ProjectId, Sandbox, SandboxEnd, SandboxState};

use crate::service::seen;
use crate::statistics::Counters;
use crate::{CoreError, Service};

impl Service {
    /// A host that has no room for another sandbox, or none for this caller, still answers for one that it made before.
    pub(crate) async fn answer_again_or(
        &self,
        refused: CoreError,
        project: &ProjectId,
        once: Option<&Once>,
    ) -> Result<Arc<Sandbox>, CoreError> {
        if let Some(once) = once
            && let Some(before) = self.shared.store.repeated(project, once).await?
        {
            return self.follow(&before).await;
        }
        if let CoreError::Busy { .. } = refused {
            Counters::count(&self.shared.counters.busy);
        }
        Err(refused)
    }

    /// Waits for a sandbox that the same request asked for before.
    pub(crate) async fn follow(&self, before: &Sandbox) -> Result<Arc<Sandbox>, CoreError> {
        let sandbox = match self.shared.handle(&before.id) {
            Some(mut handle) => seen(&mut handle, |sandbox| sandbox.state != SandboxState::Creating).await,
            None => None,
        };
        let sandbox = match sandbox {
            Some(sandbox) => sandbox,
            None => self.stored(&before.project, &before.id).await?,
        };
        match &sandbox.end {
            Some(SandboxEnd { cause: EndCause::NotMade, detail, .. }) => Err(CoreError::NotMade {
                id: sandbox.id.clone(),
                detail: format!("{detail} (nothing was made; the same request may be sent again)"),
            }),
            _ => Ok(sandbox),
        }
    }
}
