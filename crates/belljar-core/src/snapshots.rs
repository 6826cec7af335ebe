//! Snapshots: taken, listed, removed, rolled back to, and who came from whom.
//!
//! A snapshot can be named by its id or by what people call it; a name that was given again means the newest. Sandboxes that were made from
//! one do not need it, so it can be removed at any time. Removing is written down first, and gone on with after any end of the server.

use std::sync::Arc;
use std::time::Duration;

use belljar_ports::{Family, Runtime, SnapshotCursor, SnapshotFilter, SnapshotKind, SnapshotPage};
use belljar_types::{
    AuditAction, Invalid, Sandbox, SandboxId, Scope, Snapshot, SnapshotId, SnapshotName, SnapshotPurpose, SnapshotState, escape_untrusted,
};
use tracing::{error, info};

use crate::keeping::Taking;
use crate::owner::Order;
use crate::shared::Shared;
use crate::{Caller, CoreError, NoClass, Service, chain};

/// The longest a snapshot may be asked to be kept for; without a limit it is kept until it is removed.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 86_400);
/// Most sandboxes, and most snapshots, of a tree that are told.
const FAMILY: u32 = 10_000;
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(300);

/// A snapshot to take. Everything may be left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TakeSnapshot {
    /// What people call it.
    pub name: Option<SnapshotName>,
    /// What to keep; memory too when unset, if the engine can.
    pub kind: Option<SnapshotKind>,
    /// How long it is kept; until it is removed when unset.
    pub lifetime: Option<Duration>,
}

impl Service {
    /// Keeps the state of a running or paused sandbox.
    pub async fn take_snapshot(&self, caller: &Caller, id: &SandboxId, request: TakeSnapshot) -> Result<Snapshot, CoreError> {
        caller.require(Scope::Use)?;
        self.shared.refuse_if_stopping()?;
        if let Some(lifetime) = request.lifetime
            && (lifetime.is_zero() || lifetime > LONGEST)
        {
            let expected = format!("more than 0 and at most {} seconds", LONGEST.as_secs());
            return Err(Invalid::new("lifetime", expected, format!("{} seconds", lifetime.as_secs())).into());
        }
        self.shared.admission.disk_for_a_snapshot()?;
        let TakeSnapshot { name, kind, lifetime } = request;
        let taking = Taking { name, kind, purpose: SnapshotPurpose::Kept, lifetime };
        self.order(caller, id, "take a snapshot of it", |reply| Order::Snapshot(taking, reply)).await
    }

    /// A page of the caller's project's snapshots, newest first.
    pub async fn snapshots(
        &self,
        caller: &Caller,
        filter: &SnapshotFilter,
        after: Option<&SnapshotCursor>,
        limit: u32,
    ) -> Result<SnapshotPage, CoreError> {
        caller.require(Scope::Read)?;
        Ok(self.shared.store.list_snapshots(&caller.project, filter, after, limit).await?)
    }

    /// A snapshot of the caller's project, by its id or its name.
    pub async fn snapshot(&self, caller: &Caller, which: &str) -> Result<Snapshot, CoreError> {
        caller.require(Scope::Read)?;
        if let Ok(id) = which.parse::<SnapshotId>()
            && let Some(found) = self.shared.store.snapshot(&caller.project, &id).await?
        {
            return Ok(found);
        }
        let named = match which.parse::<SnapshotName>() {
            Ok(name) => self.shared.store.snapshot_named(&caller.project, &name).await?,
            Err(_) => None,
        };
        named.ok_or_else(|| CoreError::NoSnapshot { name: escape_untrusted(&which.as_bytes()[..which.len().min(80)]) })
    }

    /// Removes a snapshot. Sandboxes that were made from it live on.
    pub async fn remove_snapshot(&self, caller: &Caller, which: &str) -> Result<(), CoreError> {
        caller.require(Scope::Use)?;
        let snapshot = self.snapshot(caller, which).await?;
        let source = snapshot.source.clone();
        let action = |phase| AuditAction::lifecycle("remove_snapshot", phase, [("snapshot", which.to_owned())]);
        let shared = Arc::clone(&self.shared);
        self.recorded(caller, Some(&source), action, async move { shared.remove_snapshot(snapshot).await }).await
    }

    /// Puts a sandbox, running or paused, back to one of its own snapshots; it then runs.
    pub async fn rollback(&self, caller: &Caller, id: &SandboxId, which: &str) -> Result<Arc<Sandbox>, CoreError> {
        caller.require(Scope::Use)?;
        self.shared.refuse_if_stopping()?;
        self.sandbox(caller, id).await?;
        let snapshot = self.snapshot(caller, which).await?;
        if snapshot.source != *id {
            let expected = format!("a snapshot of sandbox {id}; this one is of {}: fork it instead", snapshot.source);
            return Err(Invalid::new("snapshot", expected, which).into());
        }
        self.order(caller, id, "roll it back", |reply| Order::RollBack(Box::new(snapshot), reply)).await
    }

    /// Everything that came from the same sandbox as this one did.
    pub async fn tree(&self, caller: &Caller, id: &SandboxId) -> Result<Family, CoreError> {
        let sandbox = self.sandbox(caller, id).await?;
        Ok(self.shared.store.family(&caller.project, sandbox.root(), FAMILY).await?)
    }
}

impl Shared {
    /// The engine that has a snapshot, if it works.
    pub(crate) fn engine_of(&self, snapshot: &Snapshot) -> Result<&Arc<dyn Runtime>, CoreError> {
        let class = snapshot.class;
        let engine = self.engine(class).ok_or(NoClass::Absent { class })?;
        match engine.report.first_failure() {
            None => Ok(&engine.runtime),
            Some(check) => Err(NoClass::Broken { class, reason: format!("{}: {}", check.name, check.found) }.into()),
        }
    }

    /// From here on nobody sees it; if the engine cannot remove it now, it is tried until it can.
    pub(crate) async fn remove_snapshot(self: &Arc<Self>, snapshot: Snapshot) -> Result<(), CoreError> {
        let runtime = Arc::clone(self.engine_of(&snapshot)?);
        let (was, id) = (snapshot.state, snapshot.id.clone());
        let removing = Snapshot { state: SnapshotState::Removing, ..snapshot };
        self.store.record_snapshot(self.epoch, was, &removing).await.inspect_err(|error| self.note(error))?;
        if !self.drop_snapshot(&runtime, &id).await {
            tokio::spawn(Arc::clone(self).drop_until_gone(runtime, id));
        }
        Ok(())
    }

    /// Removes what the engine has of a snapshot, then forgets it. Says whether both worked; whoever starts next tries again.
    pub(crate) async fn drop_snapshot(&self, runtime: &Arc<dyn Runtime>, id: &SnapshotId) -> bool {
        if let Err(failure) = runtime.remove_snapshot(id).await {
            error!(snapshot = %id, error = chain(&failure), "could not remove a snapshot");
            return false;
        }
        if let Err(failure) = self.store.forget_snapshot(self.epoch, id).await {
            self.note(&failure);
            error!(snapshot = %id, error = chain(&failure), "could not forget a snapshot that is gone");
            return false;
        }
        info!(snapshot = %id, "snapshot removed");
        true
    }

    async fn drop_until_gone(self: Arc<Self>, runtime: Arc<dyn Runtime>, id: SnapshotId) {
        let mut pause = FIRST_RETRY;
        loop {
            tokio::time::sleep(pause).await;
            if self.refuse_if_stopping().is_err() || self.drop_snapshot(&runtime, &id).await {
                return;
            }
            pause = (pause * 2).min(LAST_RETRY);
        }
    }
}
