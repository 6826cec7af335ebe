//! The verbs of [`Runtime`] for containers.
//!
//! ```text
//!   create   reserve ─▶ start ─▶ agent answers ─▶ commit        anything fails: release, and nothing is left
//!   adopt    record ─▶ find its first process ─▶ agent answers
//!   destroy  call off its making ─▶ release (kills the cgroup) ─▶ take the ending of the first process
//! ```

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use belljar_host::{Host, HostError, Makings, Record, RecordState, Snapshot};
use belljar_ports::{Capabilities, Found, Guest, Presence, Runtime, RuntimeError, SnapshotKind, SnapshotRecord};
use belljar_types::{
    EndReason, EngineReport, Execution, ExecutionId, IsolationClass, PauseKind, SandboxId, SandboxSpec, SnapshotId, Usage,
};

use crate::config::ContainerConfig;
use crate::create;
use crate::errors::{ContainerError, from_host};
use crate::live::{Live, execution, find_first};
use crate::start::Starter;
use crate::{metrics, probe, snapshot};

const CLASS: IsolationClass = IsolationClass::Container;
const PAUSED: &str = "it is paused";

/// The container class on one host.
pub struct ContainerRuntime {
    pub(crate) inner: Arc<Inner>,
}

/// What its tasks share.
pub(crate) struct Inner {
    pub(crate) host: Arc<Host>,
    pub(crate) config: ContainerConfig,
    pub(crate) starter: Arc<Starter>,
    /// No remains of a crash: they will be whole or gone.
    pub(crate) makings: Arc<Makings>,
    live: Mutex<HashMap<SandboxId, Arc<Live>>>,
}

impl ContainerRuntime {
    /// On this host.
    pub fn new(host: Arc<Host>, config: ContainerConfig) -> Self {
        let starter = Arc::new(Starter::new());
        Self { inner: Arc::new(Inner { host, config, starter, makings: Arc::default(), live: Mutex::default() }) }
    }
}

impl ContainerRuntime {
    /// What concerns no one sandbox.
    fn unavailable(&self, error: &HostError) -> RuntimeError {
        let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
        RuntimeError::Unavailable { class: CLASS, reason: format!("its disk cannot be used: {error}{cause}") }
    }
}

impl Inner {
    fn known(&self) -> MutexGuard<'_, HashMap<SandboxId, Arc<Live>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn keep(&self, id: &SandboxId, live: Arc<Live>) {
        self.known().insert(id.clone(), live);
    }

    pub(crate) async fn record(&self, id: &SandboxId) -> Result<Record, RuntimeError> {
        let record = self.host.record(id).await.map_err(|error| from_host("read the record", id, error))?;
        record.filter(|record| record.class == CLASS).ok_or_else(|| RuntimeError::NotFound { id: id.clone() })
    }

    /// The sandbox as this process knows it, or finds it.
    async fn live(&self, id: &SandboxId) -> Result<Arc<Live>, RuntimeError> {
        if let Some(live) = self.known().get(id) {
            return Ok(Arc::clone(live));
        }
        let record = self.record(id).await?;
        let state = match record.state {
            RecordState::Running => None,
            RecordState::Making => Some("its making was not finished"),
            RecordState::Paused => Some(PAUSED),
            RecordState::Resuming => Some("it is being resumed"),
        };
        if let Some(state) = state {
            return Err(RuntimeError::WrongState { id: id.clone(), state: state.to_owned() });
        }
        let cgroup = self.host.cgroup(id);
        let first = find_first(&cgroup).map_err(|source| ContainerError::Watch(source).during("find the sandbox", id))?;
        let Some(first) = first else {
            return Err(RuntimeError::Ended { id: id.clone(), reason: ended_without_us(&cgroup), detail: String::new() });
        };
        let live = Live::watch(&self.host, &record, first);
        let live = Arc::new(live.map_err(|source| ContainerError::Watch(source).during("watch the sandbox", id))?);
        // Somebody else may have found it meanwhile; one of the two is kept.
        Ok(Arc::clone(self.known().entry(id.clone()).or_insert(live)))
    }

    pub(crate) async fn destroy(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        self.makings.call_off(id).await;
        self.remove(id).await
    }

    pub(crate) async fn remove(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        if let Some(live) = self.known().get(id) {
            live.ask_to_end();
        }
        self.host.release(id).await.map_err(|error| from_host("remove the sandbox", id, error))?;
        self.forget(id).await;
        Ok(())
    }

    /// Takes the ending of a run whose processes were killed.
    pub(crate) async fn forget(&self, id: &SandboxId) {
        let live = self.known().get(id).cloned();
        if let Some(live) = live {
            live.ended().await;
            self.known().remove(id);
        }
    }

    fn presence(&self, record: &Record) -> Option<Presence> {
        if record.state == RecordState::Making {
            return (!self.makings.is_making(&record.id)).then_some(Presence::HalfMade);
        }
        if let RecordState::Paused | RecordState::Resuming = record.state {
            let memory = record.paused.as_ref().is_some_and(|paused| paused.identity.is_some());
            return Some(Presence::Paused { memory });
        }
        let cgroup = self.host.cgroup(&record.id);
        Some(match (cgroup.is_populated(), cgroup.is_frozen()) {
            (Ok(true), Ok(true)) => Presence::Frozen(execution(record)),
            (Ok(true), _) => Presence::Running(execution(record)),
            _ => {
                let known = self.known().get(&record.id).and_then(|live| live.has_ended());
                Presence::Ended(known.unwrap_or_else(|| ended_without_us(&cgroup)))
            }
        })
    }

    pub(crate) async fn set_frozen(&self, id: &SandboxId, frozen: bool) -> Result<Record, RuntimeError> {
        let record = self.record(id).await?;
        let cgroup = self.host.cgroup(id);
        let operation = if frozen { "pause the sandbox" } else { "resume the sandbox" };
        let change = move || {
            if !cgroup.is_populated()? {
                return Ok(Err(ended_without_us(&cgroup)));
            }
            if frozen { cgroup.freeze() } else { cgroup.thaw() }.map(Ok)
        };
        match tokio::task::spawn_blocking(change).await {
            Ok(Ok(Ok(()))) => Ok(record),
            Ok(Ok(Err(reason))) => Err(RuntimeError::Ended { id: id.clone(), reason, detail: String::new() }),
            Ok(Err(source)) => Err(ContainerError::Cgroup(source).during(operation, id)),
            Err(_) => Err(ContainerError::Stopped.during(operation, id)),
        }
    }
}

/// Nobody saw it end; the kernel's count is all there is to go by.
fn ended_without_us(cgroup: &belljar_host::Cgroup) -> EndReason {
    if cgroup.oom_kills().unwrap_or(0) > 0 { EndReason::OutOfMemory } else { EndReason::Exited }
}

#[async_trait]
impl Runtime for ContainerRuntime {
    fn class(&self) -> IsolationClass {
        CLASS
    }

    fn capabilities(&self) -> Capabilities {
        snapshot::CAPABILITIES
    }

    async fn probe(&self) -> EngineReport {
        probe::probe(&self.inner).await
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<Execution, RuntimeError> {
        create::make(Arc::clone(&self.inner), spec.clone(), None).await
    }

    async fn guest(&self, id: &SandboxId) -> Result<Arc<dyn Guest>, RuntimeError> {
        Ok(Arc::clone(&self.inner.live(id).await?.guest))
    }

    async fn adopt(&self, id: &SandboxId) -> Result<Execution, RuntimeError> {
        let live = self.inner.live(id).await?;
        live.guest.hello().await.map_err(|source| RuntimeError::Agent { id: id.clone(), source })?;
        Ok(live.execution.clone())
    }

    async fn inventory(&self) -> Result<Vec<Found>, RuntimeError> {
        let records = self.inner.host.records(CLASS).await.map_err(|error| self.unavailable(&error))?;
        let found = |record: Record| self.inner.presence(&record).map(|presence| Found { id: record.id, presence });
        Ok(records.into_iter().filter_map(found).collect())
    }

    async fn destroy(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        self.inner.destroy(id).await
    }

    async fn ended(&self, id: &SandboxId) -> Result<EndReason, RuntimeError> {
        match self.inner.live(id).await {
            Ok(live) => {
                let reason = live.ended().await;
                match self.inner.record(id).await {
                    Ok(record) if record.state != RecordState::Running => {
                        Err(RuntimeError::WrongState { id: id.clone(), state: PAUSED.to_owned() })
                    }
                    _ => Ok(reason),
                }
            }
            Err(RuntimeError::Ended { reason, .. }) => Ok(reason),
            Err(error) => Err(error),
        }
    }

    async fn halt(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        if let Some(live) = self.inner.known().get(id) {
            live.ask_to_end();
        }
        self.inner.host.halt(id).await.map_err(|error| from_host("end the processes", id, error))
    }

    async fn usage(&self, id: &SandboxId) -> Result<Usage, RuntimeError> {
        self.inner.record(id).await?;
        metrics::usage(&self.inner.host, id).await
    }

    async fn pause(&self, id: &SandboxId, kind: PauseKind) -> Result<(), RuntimeError> {
        snapshot::pause(&self.inner, id, kind).await
    }

    async fn resume(&self, id: &SandboxId, execution: &ExecutionId) -> Result<Execution, RuntimeError> {
        snapshot::resume(&self.inner, id, execution).await
    }

    async fn written(&self, id: &SandboxId) -> Result<PathBuf, RuntimeError> {
        self.inner.host.written(CLASS, id).await.map_err(|error| from_host("find what the sandbox has written", id, error))
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
        self.inner.host.remove_snapshot(snapshot).await.map_err(|error| self.unavailable(&error))
    }

    async fn snapshots(&self) -> Result<Vec<SnapshotRecord>, RuntimeError> {
        let found = self.inner.host.snapshots(CLASS).await.map_err(|error| self.unavailable(&error))?;
        Ok(found.iter().map(Snapshot::told).collect())
    }
}
