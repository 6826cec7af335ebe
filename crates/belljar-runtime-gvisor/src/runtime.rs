//! [`GvisorRuntime`]: the port's verbs, each handed to the module that does it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use belljar_host::{Host, HostError, Makings, Record, Snapshot};
use belljar_ports::{Capabilities, Found, Guest, MemoryState, OomScope, Runtime, RuntimeError, SnapshotKind, SnapshotRecord};
use belljar_types::{
    EndReason, EngineReport, Execution, ExecutionId, IsolationClass, PauseKind, SandboxId, SandboxSpec, SnapshotId, Usage,
};
use tokio::sync::OnceCell;

use crate::config::GvisorConfig;
use crate::errors::{EngineError, from_host};
use crate::launch::Files;
use crate::live::Live;
use crate::runsc::Runsc;
use crate::{create, probe, snapshot};

/// The gVisor engine on one host.
pub struct GvisorRuntime {
    inner: Arc<Inner>,
}

/// What its tasks share.
pub(crate) struct Inner {
    pub(crate) host: Arc<Host>,
    pub(crate) config: GvisorConfig,
    pub(crate) makings: Arc<Makings>,
    runsc: OnceCell<Runsc>,
    lives: Mutex<HashMap<SandboxId, Arc<Live>>>,
}

impl GvisorRuntime {
    /// An engine for this host. Whether it works is found out by [`Runtime::probe`] or the first use.
    pub fn new(host: Arc<Host>, config: GvisorConfig) -> Self {
        Self { inner: Arc::new(Inner { host, config, makings: Arc::default(), runsc: OnceCell::new(), lives: Mutex::default() }) }
    }
}

impl Inner {
    /// The runsc in use; looked for until one is found, then remembered.
    pub(crate) async fn runsc(&self) -> Result<&Runsc, EngineError> {
        let config = self.config.clone();
        self.runsc.get_or_try_init(|| blocking(move || Runsc::find(&config))).await
    }

    /// The sandboxes that this process looks after.
    pub(crate) fn lives(&self) -> MutexGuard<'_, HashMap<SandboxId, Arc<Live>>> {
        self.lives.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The record of a sandbox of this engine.
    pub(crate) async fn known(&self, id: &SandboxId, operation: &'static str) -> Result<Record, RuntimeError> {
        let record = self.host.record(id).await.map_err(|error| from_host(error, operation, id))?;
        record.filter(|record| record.class == IsolationClass::Gvisor).ok_or_else(|| RuntimeError::NotFound { id: id.clone() })
    }

    pub(crate) fn files(&self, id: &SandboxId) -> Files {
        let disk = self.host.pool_directory().join("sandboxes").join(id.as_str());
        Files::new(&self.host.home(id), &disk)
    }
}

/// Does blocking work off the async threads.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, EngineError> + Send + 'static) -> Result<T, EngineError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(EngineError::ShuttingDown),
        },
    }
}

#[async_trait]
impl Runtime for GvisorRuntime {
    fn class(&self) -> IsolationClass {
        IsolationClass::Gvisor
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            pause: Some(MemoryState::OnDisk),
            snapshot_filesystem: true,
            snapshot_memory: true,
            fork: true,
            oom: OomScope::Process,
            setuid: false,
            xattrs: true,
            volumes: true,
        }
    }

    async fn probe(&self) -> EngineReport {
        let config = self.inner.config.clone();
        match blocking(move || Ok(probe::report(&config))).await {
            Ok(report) => report,
            Err(error) => probe::not_tried(&error),
        }
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<Execution, RuntimeError> {
        create::make(Arc::clone(&self.inner), spec.clone(), None).await
    }

    async fn guest(&self, id: &SandboxId) -> Result<Arc<dyn Guest>, RuntimeError> {
        let live = self.inner.live(id).await?;
        live.disturb();
        Ok(live.guest.clone())
    }

    async fn adopt(&self, id: &SandboxId) -> Result<Execution, RuntimeError> {
        self.inner.take_over(id).await
    }

    async fn inventory(&self) -> Result<Vec<Found>, RuntimeError> {
        self.inner.find_all().await
    }

    async fn destroy(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        self.inner.destroy(id).await
    }

    async fn ended(&self, id: &SandboxId) -> Result<EndReason, RuntimeError> {
        self.inner.wait_for_end(id).await
    }

    async fn halt(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        if let Some(live) = self.inner.lives().get(id) {
            live.ask_to_end();
        }
        self.inner.host.halt(id).await.map_err(|error| from_host(error, "end the processes", id))
    }

    async fn usage(&self, id: &SandboxId) -> Result<Usage, RuntimeError> {
        self.inner.count_usage(id).await
    }

    async fn pause(&self, id: &SandboxId, kind: PauseKind) -> Result<(), RuntimeError> {
        snapshot::pause(&self.inner, id, kind).await
    }

    async fn resume(&self, id: &SandboxId, execution: &ExecutionId) -> Result<Execution, RuntimeError> {
        snapshot::resume(&self.inner, id, execution).await
    }

    async fn written(&self, id: &SandboxId) -> Result<PathBuf, RuntimeError> {
        let written = self.inner.host.written(IsolationClass::Gvisor, id).await;
        written.map_err(|error| from_host(error, "find what the sandbox has written", id))
    }

    async fn snapshot(&self, id: &SandboxId, snapshot: &SnapshotId, kind: SnapshotKind) -> Result<SnapshotRecord, RuntimeError> {
        snapshot::snapshot(&self.inner, id, snapshot, kind).await
    }

    async fn fork(&self, snapshot: &SnapshotId, spec: &SandboxSpec) -> Result<Execution, RuntimeError> {
        create::make(Arc::clone(&self.inner), spec.clone(), Some(snapshot.clone())).await
    }

    async fn rollback(&self, id: &SandboxId, snapshot: &SnapshotId, execution: &ExecutionId) -> Result<Execution, RuntimeError> {
        snapshot::rollback(&self.inner, id, snapshot, execution).await
    }

    async fn remove_snapshot(&self, snapshot: &SnapshotId) -> Result<(), RuntimeError> {
        self.inner.host.remove_snapshot(snapshot).await.map_err(|error| unavailable(&error))
    }

    async fn snapshots(&self) -> Result<Vec<SnapshotRecord>, RuntimeError> {
        let found = self.inner.host.snapshots(IsolationClass::Gvisor).await.map_err(|error| unavailable(&error))?;
        Ok(found.iter().map(Snapshot::told).collect())
    }
}

/// What concerns no one sandbox.
fn unavailable(error: &HostError) -> RuntimeError {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    RuntimeError::Unavailable { class: IsolationClass::Gvisor, reason: format!("its disk cannot be used: {error}{cause}") }
}
