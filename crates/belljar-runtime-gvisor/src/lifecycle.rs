//! What can be done with a sandbox that is there: it is ended without a trace, or stopped and let go on.

use belljar_ports::{Presence, RuntimeError};
use belljar_types::{Execution, IsolationClass, SandboxId};

use crate::errors::from_host;
use crate::find::require_whole;
use crate::runtime::{Inner, blocking};

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

    pub(crate) async fn freeze(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        let record = self.known(id, "pause").await?;
        match self.presence(&record).await? {
            Presence::Running(_) => {}
            Presence::Frozen(_) => return Ok(()),
            Presence::Ended(_) => return Err(RuntimeError::WrongState { id: id.clone(), state: "ended".to_owned() }),
            Presence::HalfMade => return Err(RuntimeError::WrongState { id: id.clone(), state: "being made".to_owned() }),
        }
        let cgroup = self.host.cgroup(id);
        blocking(move || Ok(cgroup.freeze()?)).await.map_err(|error| error.during("pause", id))
    }

    pub(crate) async fn thaw(&self, id: &SandboxId) -> Result<Execution, RuntimeError> {
        let record = self.known(id, "resume").await?;
        require_whole(&record)?;
        let cgroup = self.host.cgroup(id);
        blocking(move || Ok(cgroup.thaw()?)).await.map_err(|error| error.during("resume", id))?;
        self.take_over(id).await
    }
}
