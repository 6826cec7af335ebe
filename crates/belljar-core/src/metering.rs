//! What sandboxes use, and what happens when somebody has used all they may.
//!
//! ```text
//!   kernel: processor time, disk ──┐ read by the owner: at the start and end of a run, once a minute, and at the
//!   clock: time, memory × time ────┤ earliest moment at which a budget could be used up
//!   server: processes, bytes ──────┤ counted as they happen, in the ledger and in the tally
//!                                  ▼
//!                               ledger ──► reading in the store: at the start and end of a run, at most every five seconds else
//!                                  └─────► whoever crosses a limit wakes those who share it
//! ```
//! The kernel tells nobody when a group has used so much, so it is asked: by one timer of each running sandbox, some ten microseconds once a
//! minute where there is no budget. With one, the next look is when what is left could be gone if all who share it went as fast as they may.
//! Whatever is only in the ledger can be asked or read again after a `kill -9`: the kernel's counts of the kernel, the server's of the tally,
//! and time is time.

mod ledger;
mod reading;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use belljar_ports::{Store, StoreError, Tallies, Toll};
use belljar_types::{BudgetSubject, Consumption, Meter, SandboxId};
use tokio::sync::RwLock;
use tracing::error;

use ledger::Ledger;
pub(crate) use ledger::Reached;
pub(crate) use reading::{Metered, Write, refuse};

/// All budgets, and how much of each is used.
pub(crate) struct Meters {
    ledger: Mutex<Ledger>,
    tallies: Arc<dyn Tallies>,
    /// Held by whoever writes a reading, and alone by whoever sums them up: a reading is in the sum or it is not yet written, never both.
    writing: RwLock<()>,
    complained: AtomicBool,
}

impl Meters {
    /// The budgets of a store, and what was used of each.
    pub(crate) async fn load(store: &dyn Store, tallies: Arc<dyn Tallies>) -> Result<Self, StoreError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let ledger = Mutex::new(Ledger::new(u64::try_from(cores).unwrap_or(u64::MAX)));
        let meters = Self { ledger, tallies, writing: RwLock::const_new(()), complained: AtomicBool::new(false) };
        meters.reload(store).await?;
        Ok(meters)
    }

    /// To be called after a budget was changed.
    pub(crate) async fn reload(&self, store: &dyn Store) -> Result<(), StoreError> {
        let _alone = self.writing.write().await;
        let budgets = store.budgets().await?;
        let mut sums = HashMap::new();
        for budget in &budgets {
            if !sums.contains_key(&budget.subject) && !self.ledger().is_watched(&budget.subject) {
                sums.insert(budget.subject.clone(), store.consumed(&budget.subject).await?);
            }
        }
        self.ledger().set_budgets(budgets, &sums);
        Ok(())
    }

    /// Budgets of these that are reached, hard ones first.
    pub(crate) fn reached(&self, subjects: &[BudgetSubject]) -> Vec<Reached> {
        self.ledger().reached(subjects)
    }

    /// What somebody who has a budget used so far.
    pub(crate) fn used(&self, subject: &BudgetSubject) -> Consumption {
        self.ledger().used(subject)
    }

    /// Whether one of these has a budget of bytes.
    pub(crate) fn bounds_bytes(&self, subjects: &[BudgetSubject]) -> Option<(BudgetSubject, Meter)> {
        self.ledger().bounds_bytes(subjects)
    }

    /// The live sandboxes of somebody.
    pub(crate) fn members(&self, subject: &BudgetSubject) -> Vec<SandboxId> {
        self.ledger().members(subject)
    }

    /// Drops the tallies of sandboxes that are not among these: nobody will ask for them.
    pub(crate) fn drop_all_but(&self, known: &HashSet<String>) {
        for id in self.tallies.sandboxes() {
            if !known.contains(id.as_str())
                && let Err(failure) = self.tallies.drop_tally(&id)
            {
                self.complain(&failure);
            }
        }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says once that what is counted would not survive the server.
    fn complain(&self, failure: &std::io::Error) {
        if !self.complained.swap(true, Ordering::Relaxed) {
            error!(error = %failure, "could not keep a tally; executions and traffic since the last reading would be lost with the server");
        }
    }
}

/// Counts what happens in one sandbox, as it happens.
#[derive(Clone)]
pub(crate) struct Counts {
    meters: Arc<Meters>,
    sandbox: SandboxId,
}

impl Counts {
    pub(crate) fn new(meters: &Arc<Meters>, sandbox: SandboxId) -> Self {
        Self { meters: Arc::clone(meters), sandbox }
    }

    /// A process was started, or it was tried.
    pub(crate) fn execution(&self) {
        self.count(&Consumption { executions: 1, ..Consumption::default() });
    }

    fn count(&self, more: &Consumption) {
        let mut ledger = self.meters.ledger();
        let Some(total) = ledger.add(&self.sandbox, more) else { return };
        self.keep(&total);
    }

    /// To be called under the ledger's lock, so that of two the later is kept.
    fn keep(&self, total: &Consumption) {
        if let Err(failure) = self.meters.tallies.keep(&self.sandbox, &total.tally()) {
            self.meters.complain(&failure);
        }
    }

    /// Counts bytes before they go, as many as no budget forbids. Of a sandbox that is gone none may.
    fn pay(&self, meter: Meter, bytes: u64) -> u64 {
        let mut ledger = self.meters.ledger();
        let Some((paid, total)) = ledger.pay(&self.sandbox, meter, bytes) else { return 0 };
        if paid > 0 {
            self.keep(&total);
        }
        paid
    }
}

impl Toll for Counts {
    fn leaving(&self, bytes: u64) -> u64 {
        self.pay(Meter::EgressBytes, bytes)
    }

    fn entering(&self, bytes: u64) -> u64 {
        self.pay(Meter::IngressBytes, bytes)
    }
}

impl std::fmt::Debug for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counts").field("sandbox", &self.sandbox).finish_non_exhaustive()
    }
}
