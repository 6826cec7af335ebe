//! Snapshots and artifacts that were asked to be kept for some time only, removed when it is over; and recordings, which nobody asks to be kept, when
//! they are older or more than the operator wants. Sleeps until the next one is due.

use std::sync::{Arc, Weak};
use std::time::Duration;

use belljar_types::Timestamp;
use tracing::{error, info};

use crate::shared::Shared;
use crate::{CoreError, chain};

/// How far ahead is looked, and how often at least.
const AHEAD: Duration = Duration::from_secs(3600);
const AT_ONCE: u32 = 100;
const AFTER_FAILURE: Duration = Duration::from_secs(60);

/// Removes what was kept and whose time is over, for as long as the service lives.
pub(crate) async fn remove_expired(shared: Weak<Shared>) {
    let Some(woken) = shared.upgrade().map(|shared| Arc::clone(&shared.expiries)) else { return };
    loop {
        let Some(pause) = (match shared.upgrade() {
            Some(shared) => Some(round(&shared).await),
            None => None,
        }) else {
            return;
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = woken.notified() => {}
        }
    }
}

/// Removes what is due, and says how long to wait for the next.
async fn round(shared: &Arc<Shared>) -> Duration {
    let now = Timestamp::now();
    recordings(shared).await;
    match (snapshots(shared, now).await, artifacts(shared, now).await) {
        (Ok(one), Ok(other)) => one.min(other),
        (Err(failure), _) | (_, Err(failure)) => {
            error!(error = chain(&failure), "could not remove what was kept for some time only");
            AFTER_FAILURE
        }
    }
}

async fn snapshots(shared: &Arc<Shared>, now: Timestamp) -> Result<Duration, CoreError> {
    let mut left = 0;
    loop {
        // Those that cannot go stand before all others: looked past, or they would keep them all.
        let due = shared.store.expiring_snapshots(now.plus(AHEAD), AT_ONCE + left).await?;
        let is_all = due.len() < usize::try_from(AT_ONCE + left).unwrap_or(usize::MAX);
        left = 0;
        for snapshot in due {
            let (id, at) = (snapshot.id.clone(), snapshot.expires_at.unwrap_or(now));
            if at > now {
                return Ok(pause_with(left, now.until(at)));
            }
            match shared.remove_snapshot(snapshot).await {
                Ok(()) => info!(snapshot = %id, "a snapshot's time was over"),
                Err(failure) => {
                    error!(snapshot = %id, error = chain(&failure), "could not remove a snapshot whose time was over; trying again");
                    left += 1;
                }
            }
        }
        if is_all {
            return Ok(pause_with(left, AHEAD));
        }
    }
}

/// What could not be removed is tried again soon.
fn pause_with(left: u32, next: Duration) -> Duration {
    if left > 0 { next.min(AFTER_FAILURE) } else { next }
}

/// What cannot be removed today may be tomorrow: the rest is not kept waiting for it.
async fn recordings(shared: &Arc<Shared>) {
    let Some(tapes) = shared.tapes.clone() else { return };
    let keep = shared.config.recordings;
    match tokio::task::spawn_blocking(move || tapes.prune(keep)).await {
        Ok(Ok(0)) | Err(_) => {}
        Ok(Ok(gone)) => info!(gone, "recordings of terminals were too old or too many"),
        Ok(Err(failure)) => error!(error = %failure, "could not remove old recordings of terminals"),
    }
}

async fn artifacts(shared: &Arc<Shared>, now: Timestamp) -> Result<Duration, CoreError> {
    loop {
        let due = shared.store.expiring_artifacts(now.plus(AHEAD), AT_ONCE).await?;
        if due.is_empty() {
            return Ok(AHEAD);
        }
        for artifact in due {
            let at = artifact.expires_at.unwrap_or(now);
            if at > now {
                return Ok(now.until(at));
            }
            let id = artifact.id.clone();
            shared.remove_artifact(artifact).await?;
            info!(artifact = %id, "an artifact's time was over");
        }
    }
}
