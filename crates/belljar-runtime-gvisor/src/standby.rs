//! Standing still in the host's memory: everything that a sandbox consists of on the host is stopped where it is, and goes on within milliseconds.

use belljar_host::Record;
use belljar_ports::{Presence, RuntimeError};

use crate::errors::EngineError;
use crate::runtime::{Inner, blocking};

impl Inner {
    /// Whether it was told to stand by.
    pub(crate) async fn is_on_standby(&self, record: &Record) -> Result<bool, RuntimeError> {
        Ok(matches!(self.presence(record).await?, Presence::Frozen(_)))
    }

    /// Stops or lets go all of a sandbox that runs. One that has ended is told so.
    pub(crate) async fn set_frozen(&self, record: &Record, frozen: bool, operation: &'static str) -> Result<(), RuntimeError> {
        let id = &record.id;
        if let Presence::Ended(reason) = self.presence(record).await? {
            return Err(RuntimeError::Ended { id: id.clone(), reason, detail: self.files(id).last_words() });
        }
        let cgroup = self.host.cgroup(id);
        let change = move || if frozen { cgroup.freeze() } else { cgroup.thaw() }.map_err(EngineError::from);
        blocking(change).await.map_err(|error| error.during(operation, id))
    }
}
