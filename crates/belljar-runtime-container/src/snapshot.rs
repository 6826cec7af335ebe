//! State that lasts, as far as this class can: files are kept, memory is not.
//!
//! A sandbox's processes are in the host's own kernel, which cannot copy them out. So a pause with memory is a freeze: they stay where they are, and so
//! does their memory. Everything else is about files, which the host keeps for every class in the same way.

use std::sync::Arc;

use belljar_host::RecordState;
use belljar_ports::{Capabilities, MemoryState, OomScope, RuntimeError, SnapshotKind, SnapshotRecord};
use belljar_types::{Execution, ExecutionId, IsolationClass, PauseKind, SandboxId, SnapshotId};

use crate::create;
use crate::errors::from_host;
use crate::lifecycle::Inner;
use crate::live::execution;

pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    pause: Some(MemoryState::Resident),
    snapshot_filesystem: true,
    snapshot_memory: false,
    fork: true,
    oom: OomScope::Process,
    setuid: false,
    xattrs: true,
    volumes: true,
};

pub(crate) async fn pause(inner: &Arc<Inner>, id: &SandboxId, kind: PauseKind) -> Result<(), RuntimeError> {
    let (makings, inner, id) = (Arc::clone(&inner.makings), Arc::clone(inner), id.clone());
    makings
        .alone(&id.clone(), |_| async move {
            match kind {
                PauseKind::Memory | PauseKind::Standby => inner.set_frozen(&id, true).await.map(drop),
                PauseKind::Filesystem => {
                    inner.record(&id).await?;
                    inner.host.rest(&id, None).await.map_err(|error| from_host("pause the sandbox", &id, error))?;
                    inner.forget(&id).await;
                    Ok(())
                }
            }
        })
        .await
}

pub(crate) async fn resume(inner: &Arc<Inner>, id: &SandboxId, run: &ExecutionId) -> Result<Execution, RuntimeError> {
    let (makings, inner, id, run) = (Arc::clone(&inner.makings), Arc::clone(inner), id.clone(), run.clone());
    makings
        .alone(&id.clone(), |making| async move {
            if inner.record(&id).await?.state == RecordState::Running {
                return inner.set_frozen(&id, false).await.map(|record| execution(&record));
            }
            create::bring_back(&inner, &id, &run, &making).await
        })
        .await
}

pub(crate) async fn snapshot(
    inner: &Arc<Inner>,
    id: &SandboxId,
    snapshot: &SnapshotId,
    kind: SnapshotKind,
) -> Result<SnapshotRecord, RuntimeError> {
    if kind == SnapshotKind::Memory {
        let reason = "what runs in the host's kernel cannot be copied; take a snapshot of the files, or use the gvisor class".to_owned();
        return Err(RuntimeError::Unsupported { class: IsolationClass::Container, verb: "snapshots with memory", reason });
    }
    let (makings, inner, id, snapshot) = (Arc::clone(&inner.makings), Arc::clone(inner), id.clone(), snapshot.clone());
    makings
        .alone(&id.clone(), |_| async move {
            let taken = match inner.record(&id).await?.state {
                RecordState::Paused => inner.host.snapshot_paused(&id, &snapshot, false).await,
                _ => inner.host.snapshot_files(&id, &snapshot).await,
            };
            taken.map(|taken| taken.told()).map_err(|error| from_host("take a snapshot", &id, error))
        })
        .await
}

pub(crate) async fn rollback(
    inner: &Arc<Inner>,
    id: &SandboxId,
    snapshot: &SnapshotId,
    run: &ExecutionId,
) -> Result<Execution, RuntimeError> {
    let (makings, inner, id) = (Arc::clone(&inner.makings), Arc::clone(inner), id.clone());
    let (snapshot, run) = (snapshot.clone(), run.clone());
    makings
        .alone(&id.clone(), |making| async move {
            inner.record(&id).await?;
            inner.host.roll_back(&id, &snapshot, &run).await.map_err(|error| from_host("roll the sandbox back", &id, error))?;
            inner.forget(&id).await;
            create::bring_back(&inner, &id, &run, &making).await
        })
        .await
}
