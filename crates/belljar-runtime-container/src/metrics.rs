//! What a container used, from the host's own counters.

use belljar_host::Host;
use belljar_ports::RuntimeError;
use belljar_types::{SandboxId, Usage};

use crate::errors::{ContainerError, from_host};

pub(crate) async fn usage(host: &Host, id: &SandboxId) -> Result<Usage, RuntimeError> {
    let cgroup = host.cgroup(id);
    let failed = |source| ContainerError::Cgroup(source).during("read what was used", id);
    let counted = cgroup.usage().map_err(failed)?;
    Ok(Usage {
        cpu_micros: counted.cpu_micros,
        memory_bytes: counted.memory_bytes,
        memory_peak_bytes: counted.memory_peak_bytes,
        disk_bytes: host.disk_usage(id).await.map_err(|error| from_host("read what was used", id, error))?,
        pids: counted.pids,
        oom_kills: cgroup.oom_kills().map_err(failed)?,
    })
}
