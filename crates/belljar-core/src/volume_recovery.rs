//! Coming back: what the store says of volumes and what the host has are brought together.
//!
//! | in the store | the host has it | what is done |
//! |---|---|---|
//! | making | yes | it is finished: nobody was told, and it is what was asked for |
//! | making | no | it is forgotten |
//! | removing | either | it is removed |
//! | ready | yes | – |
//! | ready | no | the log says so; whoever asks for it is told |
//! | nothing | yes | an orphan, of before another store was put in place: left, and the log says so |

use std::collections::HashSet;
use std::sync::Arc;

use belljar_ports::StoreError;
use belljar_types::{Volume, VolumeId, VolumeState, escape_untrusted};
use tracing::{error, info, warn};

use crate::chain;
use crate::shared::Shared;

/// Finishes or undoes what was begun.
pub(crate) async fn settle(shared: &Arc<Shared>) -> Result<(), StoreError> {
    let found = match shared.volumes.inventory().await {
        Ok(found) => found,
        Err(failure) => {
            error!(error = chain(&failure), "could not look for volumes; they are left alone");
            return Ok(());
        }
    };
    let (volumes, unreadable) = shared.store.all_volumes().await?;
    let mut known: HashSet<String> = volumes.iter().map(|volume| volume.id.to_string()).collect();
    for row in unreadable {
        let id = escape_untrusted(row.id.as_bytes());
        error!(volume = id, detail = row.detail, "a volume's row cannot be read; the row and whatever belongs to it are left alone");
        known.insert(row.id);
    }
    let there: HashSet<&VolumeId> = found.iter().collect();
    for volume in volumes {
        let is_there = there.contains(&volume.id);
        settle_one(shared, volume, is_there).await;
    }
    let orphans = found.iter().filter(|id| !known.contains(id.as_str())).count();
    if orphans > 0 {
        warn!(
            count = orphans,
            "there are volumes on the host that the store does not know; they are left, `belljar gc --orphans` removes them"
        );
    }
    Ok(())
}

async fn settle_one(shared: &Arc<Shared>, volume: Volume, is_there: bool) {
    match (volume.state, is_there) {
        (VolumeState::Ready, true) => {}
        (VolumeState::Ready, false) => {
            error!(volume = %volume.id, project = %volume.project, "a volume that was ready is not on this host any more");
        }
        (VolumeState::Making, true) => {
            let ready = Volume { state: VolumeState::Ready, ..volume };
            match shared.store.record_volume(shared.epoch, VolumeState::Making, &ready).await {
                Ok(()) => info!(volume = %ready.id, "finished a volume that was being made"),
                Err(failure) => {
                    shared.note(&failure);
                    error!(volume = %ready.id, error = chain(&failure), "could not finish a volume that was being made");
                }
            }
        }
        (VolumeState::Making, false) | (VolumeState::Removing, _) => shared.drop_volume(&volume.id).await,
    }
}
