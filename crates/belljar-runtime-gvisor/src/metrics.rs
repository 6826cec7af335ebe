//! What a sandbox used, counted by the host's kernel: the sentry, the gofer and the stubs are all in the sandbox's group, and the memory the
//! sentry hands out is charged there too, so nothing the sandbox does is counted elsewhere.

use belljar_ports::RuntimeError;
use belljar_types::{SandboxId, Usage};

use crate::errors::{EngineError, from_host};
use crate::runtime::{GvisorRuntime, blocking};

impl GvisorRuntime {
    pub(crate) async fn count_usage(&self, id: &SandboxId) -> Result<Usage, RuntimeError> {
        const OPERATION: &str = "count the usage";
        self.known(id, OPERATION).await?;
        let disk_bytes = self.host.disk_usage(id).await.map_err(|error| from_host(error, OPERATION, id))?;
        let cgroup = self.host.cgroup(id);
        let counted = blocking(move || Ok((cgroup.usage()?, cgroup.oom_kills()?))).await;
        let (used, oom_kills) = counted.map_err(|error: EngineError| error.during(OPERATION, id))?;
        Ok(Usage {
            cpu_micros: used.cpu_micros,
            memory_bytes: used.memory_bytes,
            memory_peak_bytes: used.memory_peak_bytes,
            disk_bytes,
            pids: used.pids,
            oom_kills,
        })
    }
}
