//! Making room: layers that nothing refers to, and what is on the host although the store does not know of it.
//!
//! A volume or a snapshot is entered in the store before it is made and forgotten after it is gone. So one that the store does not know was there
//! before another store was put in place: a copy from a back-up, a new database. It is somebody's work, and nothing but an operator's word ends it.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use belljar_ports::{Runtime, SnapshotRecord, StoreError, Swept, Unreadable, VolumeError};
use belljar_types::{AuditAction, LayerDigest, Phase, Scope, SnapshotId, VolumeId};

use crate::{Caller, CoreError, Service};

/// What a clean-up is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SweepOptions {
    /// Only say what would be removed.
    pub dry_run: bool,
    /// Remove orphans too.
    pub orphans: bool,
}

/// What a clean-up found, and removed where it was asked to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cleaned {
    /// Layers that nothing refers to.
    pub layers: Vec<LayerDigest>,
    /// Their bytes.
    pub bytes: u64,
    /// Volumes on the host that the store does not know. They are left, unless orphans were asked for.
    pub orphaned_volumes: Vec<VolumeId>,
    /// The same of snapshots.
    pub orphaned_snapshots: Vec<SnapshotId>,
}

struct Orphan {
    engine: Arc<dyn Runtime>,
    id: SnapshotId,
}

impl Service {
    /// Removes layers that no template, no live sandbox and no snapshot refers to, and orphans where that is asked for; or only says which.
    pub async fn sweep(&self, caller: &Caller, options: SweepOptions) -> Result<Cleaned, CoreError> {
        caller.require(Scope::Admin)?;
        let volumes = self.orphaned_volumes().await?;
        let snapshots = self.orphaned_snapshots().await?;
        if options.orphans && !options.dry_run {
            self.remove_orphans(caller, &volumes, &snapshots).await?;
        }
        let orphaned_snapshots: Vec<_> = snapshots.into_iter().map(|orphan| orphan.id).collect();
        let going = if options.orphans { &orphaned_snapshots[..] } else { &[] };
        let swept = self.sweep_layers(going, options.dry_run).await?;
        Ok(Cleaned { layers: swept.layers, bytes: swept.bytes, orphaned_volumes: volumes, orphaned_snapshots })
    }

    /// The layers of snapshots that are going are needed no more.
    async fn sweep_layers(&self, going: &[SnapshotId], dry_run: bool) -> Result<Swept, CoreError> {
        // From here on no template goes. Whoever found one before is about to make a sandbox, or has: asked in this order, neither is missed.
        let _nobody_makes_one = self.shared.builds.gate.write().await;
        let mut keep: BTreeSet<_> = self.shared.builds.layers().into_iter().collect();
        // From the store and not from memory: sandboxes whose engine is away need their layers too.
        let sandboxes = all_readable("sandbox", self.shared.store.unended().await?)?;
        let snapshots = all_readable("snapshot", self.shared.store.all_snapshots().await?)?;
        keep.extend(sandboxes.into_iter().flat_map(|sandbox| sandbox.spec.layers));
        keep.extend(snapshots.into_iter().flat_map(|snapshot| snapshot.spec.layers));
        for (_, snapshot) in self.snapshots_on_the_host().await? {
            if !going.contains(&snapshot.id) {
                keep.extend(snapshot.layers);
            }
        }
        Ok(self.shared.templates.sweep(&keep, dry_run).await?)
    }

    /// What is there is looked for first: whatever is made after that is known by the time the store is asked.
    async fn orphaned_volumes(&self) -> Result<Vec<VolumeId>, CoreError> {
        let found = self.shared.volumes.inventory().await?;
        let known = all_readable("volume", self.shared.store.all_volumes().await?)?;
        let known: HashSet<_> = known.into_iter().map(|volume| volume.id).collect();
        Ok(found.into_iter().filter(|id| !known.contains(id)).collect())
    }

    async fn orphaned_snapshots(&self) -> Result<Vec<Orphan>, CoreError> {
        let found = self.snapshots_on_the_host().await?;
        let known = all_readable("snapshot", self.shared.store.all_snapshots().await?)?;
        let known: HashSet<_> = known.into_iter().map(|snapshot| snapshot.id).collect();
        let orphans = found.into_iter().filter(|(_, snapshot)| !known.contains(&snapshot.id));
        Ok(orphans.map(|(engine, snapshot)| Orphan { engine, id: snapshot.id }).collect())
    }

    async fn snapshots_on_the_host(&self) -> Result<Vec<(Arc<dyn Runtime>, SnapshotRecord)>, CoreError> {
        let mut all = Vec::new();
        for engine in self.shared.engines.iter().filter(|engine| engine.report.works()) {
            let found = engine.runtime.snapshots().await?;
            all.extend(found.into_iter().map(|snapshot| (Arc::clone(&engine.runtime), snapshot)));
        }
        Ok(all)
    }

    async fn remove_orphans(&self, caller: &Caller, volumes: &[VolumeId], snapshots: &[Orphan]) -> Result<(), CoreError> {
        for id in volumes {
            let (volumes, orphan) = (Arc::clone(&self.shared.volumes), id.clone());
            let removing = async move {
                match volumes.remove(&orphan).await {
                    // Somebody else was faster.
                    Ok(()) | Err(VolumeError::Absent { .. }) => Ok(()),
                    Err(failure) => Err(failure.into()),
                }
            };
            self.recorded(caller, None, removal("remove_volume", "volume", id.as_str()), removing).await?;
        }
        for Orphan { engine, id } in snapshots {
            let (engine, orphan) = (Arc::clone(engine), id.clone());
            let removing = async move { Ok(engine.remove_snapshot(&orphan).await?) };
            self.recorded(caller, None, removal("remove_snapshot", "snapshot", id.as_str()), removing).await?;
        }
        Ok(())
    }
}

fn removal(verb: &'static str, what: &'static str, id: &str) -> impl Fn(Phase) -> AuditAction + use<> {
    let detail = [(what, id.to_owned()), ("orphan", true.to_string())];
    move |phase| AuditAction::lifecycle(verb, phase, detail.clone())
}

/// A row that cannot be read may stand for anything: nothing is removed then.
fn all_readable<T>(what: &'static str, (rows, unreadable): (Vec<T>, Vec<Unreadable>)) -> Result<Vec<T>, CoreError> {
    match unreadable.into_iter().next() {
        Some(row) => Err(StoreError::Corrupt { what, id: row.id, detail: row.detail }.into()),
        None => Ok(rows),
    }
}
