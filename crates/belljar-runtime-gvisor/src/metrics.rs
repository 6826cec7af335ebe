//! What a sandbox used, counted by the host's kernel: the sentry, the gofer and the stubs are all in the sandbox's group, and the memory the
//! sentry hands out is charged there too, so nothing the sandbox does is counted elsewhere.

use belljar_ports::RuntimeError;
use belljar_types::{SandboxId, Usage};

use crate::errors::from_host;
use crate::runtime::Inner;

impl Inner {
    pub(crate) async fn count_usage(&self, id: &SandboxId) -> Result<Usage, RuntimeError> {
        const OPERATION: &str = "count the usage";
        self.known(id, OPERATION).await?;
        self.host.usage(id).await.map_err(|error| from_host(error, OPERATION, id))
    }
}
