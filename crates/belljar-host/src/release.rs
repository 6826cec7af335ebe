//! Releasing: processes first, then what they held, the record last. Each step works on whatever is left, so that any number of
//! crashes and repetitions ends in the same nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use belljar_linux::cgroup::{Cgroup, Tree};
use belljar_types::SandboxId;

use crate::config::Places;
use crate::error::HostError;
use crate::inner::Inner;
use crate::pausing::remove_captures;
use crate::pool::Pool;
use crate::record::RecordState;
use crate::records;
use crate::spent::{Note, end_run};

/// Killed processes are gone in milliseconds, unless they wait for a disk that does not answer.
const DEATH: Duration = Duration::from_secs(10);

impl Inner {
    /// Ends what runs of a sandbox; all else stays, and what it used can still be asked.
    pub(crate) fn halt(&self, id: &SandboxId) -> Result<(), HostError> {
        self.usable()?;
        let _turn = self.busy.wait_for(id);
        end_run(&self.places, &self.tree, id, Note::Passing)
    }

    pub(crate) fn release(&self, id: &SandboxId) -> Result<(), HostError> {
        self.usable()?;
        let started = Instant::now();
        let _turn = self.busy.wait_for(id);
        let record = records::read(&self.places, id)?;
        let was_there = remove_all_but_slot(&self.places, &self.tree, &self.pool, id)?;
        // A paused sandbox has no slot: the number in its record may be another one's by now.
        if let Some(record) = record.filter(|record| record.state != RecordState::Paused) {
            self.stock.give_back(record.slot, record.network);
        }
        if was_there {
            tracing::info!(sandbox = %id, micros = started.elapsed().as_micros(), "sandbox released");
        }
        Ok(())
    }
}

/// Returns whether anything was there.
pub(crate) fn remove_all_but_slot(places: &Places, tree: &Arc<Tree>, pool: &Pool, id: &SandboxId) -> Result<bool, HostError> {
    let was_there = places.home(id).exists() || places.subvolume(id).exists();
    end_processes(tree, id)?;
    pool.remove(id)?;
    remove_captures(places, pool, id)?;
    records::forget(places, id)?;
    Ok(was_there)
}

/// Kills what runs in a sandbox's cgroup and removes that; does nothing if there is none.
fn end_processes(tree: &Arc<Tree>, id: &SandboxId) -> Result<(), HostError> {
    let cgroup = tree.group(id.as_str());
    if empty(&cgroup, id)? { remove(&cgroup, id) } else { Ok(()) }
}

/// Kills what runs in a cgroup and waits until nothing does. Says whether there is one.
pub(crate) fn empty(cgroup: &Cgroup, id: &SandboxId) -> Result<bool, HostError> {
    let failed = |operation| move |source| HostError::Cgroup { operation, id: id.clone(), source };
    if !cgroup.exists() {
        return Ok(false);
    }
    cgroup.kill().map_err(failed("kill"))?;
    if !cgroup.wait_empty(DEATH).map_err(failed("empty"))? {
        return Err(HostError::Undying { id: id.clone(), seconds: DEATH.as_secs() });
    }
    Ok(true)
}

pub(crate) fn remove(cgroup: &Cgroup, id: &SandboxId) -> Result<(), HostError> {
    cgroup.remove().map_err(|source| HostError::Cgroup { operation: "remove", id: id.clone(), source })
}
