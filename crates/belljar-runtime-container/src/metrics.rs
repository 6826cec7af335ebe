//! What a container used, from the host's own counters.

use belljar_host::Host;
use belljar_ports::RuntimeError;
use belljar_types::{SandboxId, Usage};

use crate::errors::from_host;

pub(crate) async fn usage(host: &Host, id: &SandboxId) -> Result<Usage, RuntimeError> {
    host.usage(id).await.map_err(|error| from_host("read what was used", id, error))
}
