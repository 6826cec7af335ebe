//! An owner's reading of its sandbox's meter, and what follows from it.

use std::sync::Arc;
use std::time::Duration;

use belljar_ports::StoreError;
use belljar_types::{
    AtLimit, AuditAction, Budget, BudgetSubject, Consumption, EndCause, MessageKind, Meter, MeterReading, PauseKind, Sandbox, SandboxState,
    Timestamp, Usage,
};
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::{error, warn};

use super::ledger::Rate;
use super::{Counts, Meters, Reached};
use crate::owner::{Next, Owner};
use crate::policies::policy_of;
use crate::{CoreError, chain, telling};

/// A running sandbox is read so often, whatever happens: what the machine's own end could take with it is not more.
const SAMPLE_EVERY: Duration = Duration::from_secs(60);
/// A reading is written so often at most, unless it must be.
const WRITE_EVERY: Duration = Duration::from_secs(5);

/// Whether a reading goes to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    Now,
    IfDue,
}

/// What an owner knows of its sandbox's meter. The sandbox counts as long as this is held.
pub(crate) struct Metered {
    meters: Arc<Meters>,
    id: belljar_types::SandboxId,
    subjects: Vec<BudgetSubject>,
    pub(crate) stir: Arc<Notify>,
    read: Instant,
    written: Option<Instant>,
    pub(crate) look_at: Instant,
}

impl Drop for Metered {
    fn drop(&mut self) {
        self.meters.ledger().leave(&self.id);
    }
}

/// A sandbox that runs, as long as this is held.
pub(crate) struct Running {
    meters: Arc<Meters>,
    id: belljar_types::SandboxId,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.meters.ledger().rest(&self.id);
    }
}

impl Metered {
    pub(crate) fn new(meters: &Arc<Meters>, sandbox: &Sandbox) -> Self {
        let mut subjects = vec![BudgetSubject::Project(sandbox.project.clone()), BudgetSubject::Sandbox(sandbox.id.clone())];
        subjects.extend(sandbox.asked_with.clone().map(BudgetSubject::Key));
        let stir = Arc::new(Notify::new());
        meters.ledger().join(&sandbox.id, subjects.clone(), Arc::clone(&stir));
        let now = Instant::now();
        let metered = Self { meters: Arc::clone(meters), id: sandbox.id.clone(), subjects, stir, read: now, written: None, look_at: now };
        metered.rule(sandbox);
        metered
    }

    /// Holds the sandbox to what its policy lets it use. What it used before counts.
    pub(crate) fn rule(&self, sandbox: &Sandbox) {
        let budget = |(meter, hard)| Budget {
            subject: BudgetSubject::Sandbox(sandbox.id.clone()),
            meter,
            soft: None,
            hard: Some(hard),
            at_limit: AtLimit::Pause,
            warned_at: None,
        };
        let limits: Vec<_> = match policy_of(sandbox) {
            Ok(policy) => policy.and_then(|policy| policy.budget).unwrap_or_default().limits().collect(),
            Err(unreadable) => {
                error!(sandbox = %sandbox.id, error = chain(&unreadable), "a sandbox's policy cannot be read: it is paused");
                vec![(Meter::WallMillis, 0)]
            }
        };
        self.meters.ledger().rule(&sandbox.id, limits.into_iter().map(budget).collect());
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts::new(&self.meters, self.id.clone())
    }

    /// Takes in what the host counted, and the time since the last time.
    fn take(&mut self, usage: Option<&Usage>, memory_bytes: u64) -> Consumption {
        let wall_millis = u64::try_from(self.read.elapsed().as_millis()).unwrap_or(u64::MAX);
        // Whole milliseconds: what is less is not lost by looking often.
        self.read += Duration::from_millis(wall_millis);
        let mut ledger = self.meters.ledger();
        let more = since(&ledger.total(&self.id), usage, wall_millis, memory_bytes);
        ledger.add(&self.id, &more).unwrap_or_default()
    }
}

/// What is new, given what the kernel counts now and how long it ran since.
pub(super) fn since(before: &Consumption, usage: Option<&Usage>, wall_millis: u64, memory_bytes: u64) -> Consumption {
    let wall = before.wall_millis.saturating_add(wall_millis);
    // Of the whole time, not of each piece.
    let memory = (memory_bytes >> 20).saturating_mul(wall) / 1000;
    Consumption {
        // It is going, or gone: what was read last stands.
        cpu_micros: usage.map_or(0, |usage| usage.cpu_micros.saturating_sub(before.cpu_micros)),
        wall_millis,
        memory_mib_seconds: memory.saturating_sub(before.memory_mib_seconds),
        disk_bytes: usage.map_or(0, |usage| usage.disk_bytes.saturating_sub(before.disk_bytes)),
        ..Consumption::default()
    }
}

impl Owner {
    /// Goes on with what the server before had read and counted. One that ran all the while used that time too.
    pub(crate) async fn take_up_meter(&mut self, ran_meanwhile: bool) -> Result<(), StoreError> {
        let reading = self.shared.store.meter_reading(&self.sandbox.id).await?;
        let written = reading.as_ref().map(|reading| reading.total).unwrap_or_default();
        let mut total = written;
        if let Some(tally) = self.meter.meters.tallies.kept(&self.sandbox.id) {
            total.executions = total.executions.max(tally.executions);
            total.egress_bytes = total.egress_bytes.max(tally.egress_bytes);
            total.ingress_bytes = total.ingress_bytes.max(tally.ingress_bytes);
        }
        self.meter.meters.ledger().go_on_from(&self.sandbox.id, written, &total);
        if ran_meanwhile && let Some(then) = reading.map(|reading| reading.read_at).or(self.sandbox.started_at) {
            self.meter.read = Instant::now().checked_sub(then.until(Timestamp::now())).unwrap_or_else(Instant::now);
        }
        Ok(())
    }

    /// Counts it as running until what is returned is dropped.
    pub(crate) fn begin_to_run(&self) -> Running {
        let meters = Arc::clone(&self.meter.meters);
        meters.ledger().run(&self.sandbox.id, Rate::of(&self.sandbox.spec.limits));
        Running { meters, id: self.sandbox.id.clone() }
    }

    /// Reads the meter and writes it down if that is due. Says whether the store has it.
    pub(crate) async fn read_meter(&mut self, write: Write) -> bool {
        let usage = self.runtime.usage(&self.sandbox.id).await.ok();
        let meters = Arc::clone(&self.meter.meters);
        let _counted = meters.writing.read().await;
        let total = self.meter.take(usage.as_ref(), self.sandbox.spec.limits.memory_bytes);
        if write == Write::IfDue && self.meter.written.is_some_and(|at| at.elapsed() < WRITE_EVERY) {
            return false;
        }
        let reading = MeterReading {
            sandbox: self.sandbox.id.clone(),
            project: self.sandbox.project.clone(),
            key: self.sandbox.asked_with.clone(),
            total,
            read_at: Timestamp::now(),
        };
        match self.shared.store.write_meter_reading(self.shared.epoch, &reading).await {
            Ok(()) => {
                meters.ledger().written(&self.sandbox.id, total);
                self.meter.written = Some(Instant::now());
                true
            }
            Err(failure) => {
                self.shared.note(&failure);
                error!(sandbox = %self.sandbox.id, error = chain(&failure), "could not write down what a sandbox used");
                false
            }
        }
    }

    /// Ends its processes, so that nothing is used any more, and writes down what it used in all. `was_running`: up to now.
    pub(crate) async fn read_meter_last(&mut self, was_running: bool) {
        if let Err(failure) = self.runtime.halt(&self.sandbox.id).await {
            warn!(sandbox = %self.sandbox.id, error = chain(&failure), "could not end a sandbox's processes to count them; removing it all the same");
        }
        if !was_running {
            self.restart_clock();
        }
        if self.read_meter(Write::Now).await
            && let Err(failure) = self.meter.meters.tallies.drop_tally(&self.sandbox.id)
        {
            self.meter.meters.complain(&failure);
        }
    }

    /// The sandbox stood still: that time is not counted.
    pub(crate) fn restart_clock(&mut self) {
        self.meter.read = Instant::now();
    }

    /// Reads the meter, tells of budgets that are nearly used up, and says what to do about one that is.
    pub(crate) async fn look(&mut self) -> Option<Reached> {
        self.read_meter(Write::IfDue).await;
        let reached = self.meter.meters.reached(&self.meter.subjects);
        for soft in reached.iter().filter(|reached| reached.budget.warned_at.is_none()) {
            if soft.budget.soft.is_some_and(|limit| soft.used >= limit) {
                self.warn_of(soft).await;
            }
        }
        let full = reached.into_iter().find(|reached| reached.hard);
        match &full {
            Some(full) => self.tell_of_end(full).await,
            None => {
                let soonest = self.meter.meters.ledger().next_look(&self.meter.subjects).unwrap_or(SAMPLE_EVERY);
                self.meter.look_at = Instant::now() + soonest.min(SAMPLE_EVERY);
            }
        }
        full
    }

    /// Refuses to go on for a sandbox whose budget is used up.
    pub(crate) fn refuse_over_budget(&self) -> Result<(), CoreError> {
        refuse(&self.meter.meters.reached(&self.meter.subjects))
    }

    /// Tells of a soft limit, if nobody did yet.
    async fn warn_of(&self, reached: &Reached) {
        let now = Timestamp::now();
        let (limit, did) = (reached.budget.soft.unwrap_or_default(), "warn");
        let message = telling::of_budget(MessageKind::BudgetWarning, &self.sandbox, reached, limit, did);
        match self.shared.store.warn_of_budget(self.shared.epoch, &reached.budget, now, &message).await {
            Ok(first) => {
                self.meter.meters.ledger().warned(&reached.budget, now);
                if first {
                    self.shared.tellings.notify_one();
                    self.tell_of(reached, limit, did).await;
                }
            }
            Err(failure) => {
                self.shared.note(&failure);
                error!(sandbox = %self.sandbox.id, error = chain(&failure), "could not note that a budget is nearly used up");
            }
        }
    }

    /// Tells of a hard limit, before the sandbox is stopped for it.
    async fn tell_of_end(&self, reached: &Reached) {
        let (limit, did) = (reached.budget.hard.unwrap_or_default(), reached.budget.at_limit.as_str());
        let message = telling::of_budget(MessageKind::BudgetReached, &self.sandbox, reached, limit, did);
        match self.shared.store.tell(self.shared.epoch, &message).await {
            Ok(_) => self.shared.tellings.notify_one(),
            Err(failure) => {
                self.shared.note(&failure);
                error!(sandbox = %self.sandbox.id, error = chain(&failure), "could not enter what is to be told of a budget");
            }
        }
        self.tell_of(reached, limit, did).await;
    }

    async fn tell_of(&self, reached: &Reached, limit: u64, did: &str) {
        let Reached { budget, used, .. } = reached;
        warn!(sandbox = %self.sandbox.id, subject = %budget.subject, meter = %budget.meter, used, limit, did, "a budget was reached");
        let action = AuditAction::Budget {
            meter: budget.meter.to_string(),
            subject: budget.subject.to_string(),
            limit,
            used: *used,
            did: did.to_owned(),
        };
        self.note(action).await;
    }

    /// What becomes of a sandbox that has used up a budget.
    pub(crate) async fn stop_for(&mut self, reached: &Reached) -> Next {
        let detail = over(reached).to_string();
        if reached.budget.at_limit == AtLimit::Kill {
            return Next::End(EndCause::Budget, detail, None);
        }
        let kind = if self.runtime.capabilities().pause.is_some() { PauseKind::Memory } else { PauseKind::Filesystem };
        match self.pause(kind).await {
            Ok(_) => Next::Again,
            Err(failure) => {
                error!(sandbox = %self.sandbox.id, error = chain(&failure), "could not pause a sandbox whose budget is used up; ending it");
                Next::End(EndCause::Budget, format!("{detail}, and it could not be paused"), None)
            }
        }
    }

    /// Whether it runs, so that time passes for it.
    pub(crate) fn is_running(&self) -> bool {
        self.sandbox.state == SandboxState::Running
    }
}

/// An error, if any of these is used up.
pub(crate) fn refuse(reached: &[Reached]) -> Result<(), CoreError> {
    reached.iter().find(|reached| reached.hard).map_or(Ok(()), |reached| Err(over(reached)))
}

fn over(reached: &Reached) -> CoreError {
    CoreError::OverBudget {
        subject: reached.budget.subject.to_string(),
        meter: reached.budget.meter,
        used: reached.used,
        limit: reached.budget.hard.unwrap_or_default(),
    }
}
