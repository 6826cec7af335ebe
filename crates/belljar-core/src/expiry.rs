//! Snapshots that were asked to be kept for some time only, removed when it is over. Sleeps until the next one is due.

use std::sync::{Arc, Weak};
use std::time::Duration;

use belljar_types::Timestamp;
use tracing::{error, info, warn};

use crate::chain;
use crate::shared::Shared;

/// How far ahead is looked, and how often at least.
const AHEAD: Duration = Duration::from_secs(3600);
const AT_ONCE: u32 = 100;
const AFTER_FAILURE: Duration = Duration::from_secs(60);

/// Removes snapshots whose time is over, for as long as the service lives.
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
    let soon = match shared.store.expiring_snapshots(now.plus(AHEAD), AT_ONCE).await {
        Ok(soon) => soon,
        Err(failure) => {
            warn!(error = chain(&failure), "could not look for snapshots that expire");
            return AFTER_FAILURE;
        }
    };
    for snapshot in soon {
        let at = snapshot.expires_at.unwrap_or(now);
        if at > now {
            return now.until(at);
        }
        let id = snapshot.id.clone();
        match shared.remove_snapshot(snapshot).await {
            Ok(()) => info!(snapshot = %id, "a snapshot's time was over"),
            Err(failure) => {
                error!(snapshot = %id, error = chain(&failure), "could not remove a snapshot whose time is over");
                return AFTER_FAILURE;
            }
        }
    }
    AHEAD
}
