//! Changing a sandbox that is there: how long it lives, what is said about it, what it may do.

use std::sync::Arc;

use belljar_types::{AuditAction, Sandbox, SandboxId, Scope, hex};
use sha2::{Digest, Sha256};

use crate::owner::Order;
use crate::request::{Lease, SandboxChange};
use crate::{Caller, CoreError, Service};

impl Service {
    /// Sets how long a sandbox lives from now on.
    pub async fn set_lease(self: &Arc<Self>, caller: &Caller, id: &SandboxId, lease: Lease) -> Result<Arc<Sandbox>, CoreError> {
        self.update(caller, id, SandboxChange { lease: Some(lease), ..SandboxChange::default() }).await
    }

    /// Changes a sandbox, all at once or not at all.
    pub async fn update(self: &Arc<Self>, caller: &Caller, id: &SandboxId, change: SandboxChange) -> Result<Arc<Sandbox>, CoreError> {
        caller.require(Scope::Use)?;
        change.validate(&self.shared.config)?;
        let policy = change.policy.as_ref().map(|policy| hex(&Sha256::digest(policy.to_json().as_bytes())));
        let (service, by, sandbox) = (Arc::clone(self), caller.clone(), id.clone());
        let order = async move { service.order(&by, &sandbox, "change it", |reply| Order::Change(change, reply)).await };
        match policy {
            None => order.await,
            // Of another project's sandbox nothing is written into anybody's log.
            Some(sha256) if self.sandbox(caller, id).await.is_ok() => {
                let action =
                    |phase| AuditAction::Policy { verb: "set".to_owned(), phase, subject: id.to_string(), sha256: Some(sha256.clone()) };
                self.recorded(caller, Some(id), action, order).await
            }
            Some(_) => order.await,
        }
    }
}
