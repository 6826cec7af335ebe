//! Coming back: what the store says of snapshots and what the engines have are brought together.
//!
//! | in the store | the engine has it whole | what is done |
//! |---|---|---|
//! | making, to be kept | yes | it is finished: nobody was told, and it is what was asked for |
//! | making, to be kept | no | what is left is removed, and it is forgotten |
//! | making, for a fork | either | the same; forks that were to be all or none were ended before |
//! | removing | either | it is removed |
//! | whole | yes | – |
//! | whole | no | the log says so; whoever asks for it is told |
//! | warm | yes | its template's sandboxes begin with it, as before |
//! | warm | no | it is forgotten |
//! | nothing | yes | an orphan, of before another store was put in place: left, and the log says so |
//! | any | its engine does not work | left alone |

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use belljar_ports::{Runtime, SnapshotRecord, Unreadable};
use belljar_types::{Snapshot, SnapshotId, SnapshotPurpose, SnapshotState, escape_untrusted};
use tracing::{error, info, warn};

use crate::chain;
use crate::shared::Shared;

/// The marks of forks that were to be all or none and that nobody finished: what was made for them is to go.
pub(crate) fn unfinished_forks(snapshots: &[Snapshot]) -> HashSet<SnapshotId> {
    let unfinished = |snapshot: &&Snapshot| snapshot.purpose == SnapshotPurpose::ForkTogether && snapshot.state == SnapshotState::Making;
    snapshots.iter().filter(unfinished).map(|snapshot| snapshot.id.clone()).collect()
}

/// Finishes or undoes what was begun. Forks that were to be all or none have been ended.
pub(crate) async fn settle(shared: &Arc<Shared>, snapshots: Vec<Snapshot>, unreadable: Vec<Unreadable>) {
    let mut known: HashSet<String> = snapshots.iter().map(|snapshot| snapshot.id.to_string()).collect();
    for row in unreadable {
        let id = escape_untrusted(row.id.as_bytes());
        error!(snapshot = id, detail = row.detail, "a snapshot's row cannot be read; the row and whatever belongs to it are left alone");
        known.insert(row.id);
    }
    let mut orphans = 0;
    let mut rows: HashMap<_, Vec<Snapshot>> = HashMap::new();
    for snapshot in snapshots {
        rows.entry(snapshot.class).or_default().push(snapshot);
    }
    for engine in shared.engines.iter().filter(|engine| engine.report.works()) {
        let class = engine.report.class;
        let found = match engine.runtime.snapshots().await {
            Ok(found) => found,
            Err(failure) => {
                error!(%class, error = chain(&failure), "could not look for snapshots of this class; they are left alone");
                continue;
            }
        };
        let mut found: HashMap<SnapshotId, SnapshotRecord> = found.into_iter().map(|record| (record.id.clone(), record)).collect();
        for snapshot in rows.remove(&class).unwrap_or_default() {
            let record = found.remove(&snapshot.id);
            settle_one(shared, &engine.runtime, snapshot, record).await;
        }
        orphans += found.keys().filter(|id| !known.contains(id.as_str())).count();
    }
    if orphans > 0 {
        warn!(
            count = orphans,
            "there are snapshots on the host that the store does not know; they are left, `belljar gc --orphans` removes them"
        );
    }
}

async fn settle_one(shared: &Arc<Shared>, runtime: &Arc<dyn Runtime>, snapshot: Snapshot, found: Option<SnapshotRecord>) {
    let id = snapshot.id.clone();
    match (snapshot.state, snapshot.purpose, found) {
        (SnapshotState::Whole, _, Some(_)) => {}
        (SnapshotState::Warm, _, Some(_)) => shared.warm.put(&snapshot),
        (SnapshotState::Whole, _, None) => {
            error!(snapshot = %id, project = %snapshot.project, "a snapshot that was whole is not on this host any more");
        }
        (SnapshotState::Making, SnapshotPurpose::Kept, Some(record)) => {
            let whole = Snapshot { state: SnapshotState::Whole, bytes: record.bytes, stood_still: record.stood_still, ..snapshot };
            match shared.store.record_snapshot(shared.epoch, SnapshotState::Making, &whole).await {
                Ok(()) => info!(snapshot = %id, "finished a snapshot that was being taken when the server ended"),
                Err(failure) => {
                    shared.note(&failure);
                    error!(snapshot = %id, error = chain(&failure), "could not record a snapshot that is there");
                }
            }
        }
        (SnapshotState::Making | SnapshotState::Warm | SnapshotState::Removing, _, _) => {
            shared.drop_snapshot(runtime, &id).await;
        }
    }
}
