//! Ending a sandbox, whatever state it is in, without a trace.

use belljar_ports::RuntimeError;
use belljar_types::{IsolationClass, SandboxId};

use crate::errors::from_host;
use crate::runtime::Inner;

impl Inner {
    /// Removes it, also while it is being made.
    pub(crate) async fn destroy(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        self.makings.call_off(id).await;
        self.remove(id).await
    }

    pub(crate) async fn remove(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        let record = self.host.record(id).await.map_err(|error| from_host(error, "destroy", id))?;
        if record.is_some_and(|record| record.class != IsolationClass::Gvisor) {
            return Ok(());
        }
        if let Some(live) = self.lives().remove(id) {
            live.ask_to_end();
        }
        let released = self.host.release(id).await;
        released.map_err(|error| from_host(error, "destroy", id))
    }
}
