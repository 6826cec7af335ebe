//! What this process keeps for a sandbox that runs: its agent, whose answers are judged by the host's memory kills, its clock and its rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use belljar_guest_client::{GuestClient, JudgedGuest, OomLedger};
use belljar_host::{Agent, Gate, Host, Record, end_at, time_is_up};
use belljar_types::{EndReason, Termination};
use tokio::task::AbortHandle;

use crate::attributes::RootAttributes;
use crate::launch::Files;
use crate::rest::Rest;

/// A sandbox that this process made or found.
pub(crate) struct Live {
    pub(crate) guest: Arc<JudgedGuest<GuestClient>>,
    /// Shut while its memory is written down.
    pub(crate) gate: Gate,
    ledger: Arc<OomLedger>,
    asked_to_end: Arc<AtomicBool>,
    clock: Option<AbortHandle>,
    /// None if its runsc rests by itself.
    rest: Option<Rest>,
}

impl Live {
    pub(crate) fn new(host: &Arc<Host>, record: &Record, files: Files, never_rests: bool) -> Self {
        let rest = never_rests.then(|| Rest::new(files.clone(), host.cgroup(&record.id)));
        let attributes = RootAttributes::new(files, host.cgroup(&record.id));
        let Agent { guest, ledger, gate } = host.agent(record, ends_by_memory, Some(Arc::new(attributes)));
        let asked_to_end = Arc::new(AtomicBool::new(false));
        let clock = time_is_up(record).map(|moment| {
            let (cgroup, asked_to_end) = (host.cgroup(&record.id), asked_to_end.clone());
            tokio::spawn(async move { end_at(moment, cgroup, &asked_to_end).await }).abort_handle()
        });
        Self { guest, gate, ledger, asked_to_end, clock, rest }
    }

    /// Somebody is about to ask something of it.
    pub(crate) fn disturb(&self) {
        if let Some(rest) = &self.rest {
            rest.disturb();
        }
    }

    /// From now on its end is somebody's wish.
    pub(crate) fn ask_to_end(&self) {
        self.asked_to_end.store(true, Ordering::Release);
    }

    /// Why it ended, once it has. A memory kill that no process's end explains was the sentry's.
    pub(crate) fn end_reason(&self) -> EndReason {
        if self.asked_to_end.load(Ordering::Acquire) {
            EndReason::Killed
        } else if self.ledger.has_unexplained_kills() {
            EndReason::OutOfMemory
        } else {
            EndReason::Exited
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(clock) = &self.clock {
            clock.abort();
        }
    }
}

/// The sentry turns the death of a stub into an ordinary exit, with the number of an error it has no number for.
fn ends_by_memory(termination: Termination) -> bool {
    termination == Termination::Exited(1)
}
