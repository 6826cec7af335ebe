//! The owner of one sandbox: a task that alone changes its state, from its making to its end.
//!
//! ```text
//!   reserve ─► engine.create ─► record running ─► ┌ an order (change, kill)  ┐
//!      │            │                             │ the engine says it ended │ ─► record stopping ─► engine.destroy ─► record stopped
//!      ▼            ▼                             └ lease, idle or wall time ┘
//!   refused      record failed
//! ```
//!
//! Everything is written before it is answered for, and what is about to be destroyed is written down before it is: whoever comes
//! after a crash finds in the store what to finish. Timers run on the monotonic clock, so that a jump of the wall clock ends nothing.

mod orders;
mod writing;

use std::sync::Arc;
use std::time::Duration;

use belljar_ports::{Once, Reserved, Runtime, RuntimeError, StoreError};
use belljar_types::{Actor, AuditAction, AuditEvent, EndCause, Execution, Phase, Sandbox, SandboxEnd, SandboxState, Timestamp};
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc, watch};
use tokio::time::Instant;
use tracing::{error, info, warn};

use crate::activity::Activity;
use crate::admission::Place;
use crate::ending::wait_for_end;
use crate::metering::{Metered, Write};
use crate::request::{Lease, SandboxChange};
use crate::shared::{Handle, Shared};
use crate::statistics::Counters;
use crate::{CoreError, chain};
pub(crate) use orders::{Birth, Next, Order, Reply, because, killed};

/// How many orders may wait for an owner; more wait outside.
const MAILBOX: usize = 16;
/// How far the engine's wall clock and the monotonic one here may be from each other.
const CLOCKS_APART: Duration = Duration::from_secs(1);

/// The task's own state.
pub(crate) struct Owner {
    pub(crate) shared: Arc<Shared>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) sandbox: Sandbox,
    pub(crate) view: watch::Sender<Arc<Sandbox>>,
    pub(crate) orders: mpsc::Receiver<Order>,
    pub(crate) activity: Arc<Activity>,
    /// Whoever asked for what is being done; nobody when the owner acts by itself.
    pub(crate) actor: Actor,
    pub(crate) meter: Metered,
    lease_ends: Option<Instant>,
    wall_ends: Option<Instant>,
    /// Given back when the sandbox is gone, before anybody is told so.
    pub(crate) place: Option<Place>,
    /// What the engine has made of it and the store does not know yet.
    owed: Option<Sandbox>,
}

impl Owner {
    /// An owner for a sandbox; from now on it can be found.
    pub(crate) fn new(shared: &Arc<Shared>, runtime: Arc<dyn Runtime>, sandbox: Sandbox, place: Place) -> Self {
        let (view, seen) = watch::channel(Arc::new(sandbox.clone()));
        let (send, orders) = mpsc::channel(MAILBOX);
        let activity = Arc::new(Activity::new());
        let meter = Metered::new(&shared.meters, &sandbox);
        let handle = Handle {
            view: seen,
            orders: send,
            activity: Arc::clone(&activity),
            told: Arc::default(),
            counts: meter.counts(),
            runtime: Arc::clone(&runtime),
        };
        shared.insert(sandbox.id.clone(), handle);
        Self {
            shared: Arc::clone(shared),
            runtime,
            sandbox,
            view,
            orders,
            activity,
            actor: Actor::default(),
            meter,
            lease_ends: None,
            wall_ends: None,
            place: Some(place),
            owed: None,
        }
    }

    /// Makes the sandbox and owns it from then on. Runs to its end even if whoever asked has gone.
    pub(crate) async fn make_and_own(mut self, once: Option<Once>, turn: OwnedSemaphorePermit, reply: Reply<Birth>) {
        let unfinished = self.shared.unfinished.token();
        let made = self.make(once.as_ref()).await;
        drop(turn);
        self.note_making(&made).await;
        let born = matches!(made, Ok(Birth::Made(_)));
        if !born {
            self.shared.remove(&self.sandbox.id);
            self.place = None;
        }
        // Whoever asked may be gone; the sandbox lives on until its lease ends.
        let _gone = reply.send(made);
        drop(unfinished);
        if born {
            self.own().await;
        }
    }

    /// Writes down what came of a request to make it. From then on the owner acts by itself.
    async fn note_making(&mut self, made: &Result<Birth, CoreError>) {
        let (phase, detail) = match made {
            Ok(Birth::Made(_)) => (Phase::Done, None),
            Ok(Birth::Before(before)) => (Phase::Done, Some(("before", before.id.to_string()))),
            Err(failure) => (Phase::Failed, Some(("reason", chain(failure)))),
        };
        self.note(AuditAction::lifecycle("create", phase, detail)).await;
        self.actor = Actor::default();
    }

    /// Writes down what the owner did.
    pub(crate) async fn note(&self, action: AuditAction) {
        let (project, sandbox) = (self.sandbox.project.clone(), Some(self.sandbox.id.clone()));
        self.shared.audit.note(AuditEvent { project, sandbox, actor: self.actor.clone(), action }).await;
    }

    async fn make(&mut self, once: Option<&Once>) -> Result<Birth, CoreError> {
        match self.shared.store.reserve(self.shared.epoch, &self.sandbox, once).await {
            Ok(Reserved::New) => self.shared.news.tell(Arc::new(self.sandbox.clone()), None),
            Ok(Reserved::Before(before)) => return Ok(Birth::Before(Arc::from(before))),
            Err(error) => {
                self.shared.note(&error);
                return Err(error.into());
            }
        }
        let made = match &self.sandbox.begins_with {
            None => self.runtime.create(&self.sandbox.spec).await,
            Some(beginning) => self.runtime.fork(&beginning.snapshot, &self.sandbox.spec).await,
        };
        let made = match made {
            Err(failure) if self.is_warm() => self.start_cold(failure).await,
            made => made,
        };
        let failure = match made {
            Ok(execution) => match self.first_run(&execution).await {
                Ok(()) => {
                    Counters::count(&self.shared.counters.created);
                    return Ok(Birth::Made(Arc::new(self.sandbox.clone())));
                }
                // The server that took over may have adopted it, and removes it otherwise: this one has no say any more.
                Err(CoreError::Store(error @ StoreError::Fenced { .. })) => return Err(error.into()),
                Err(failure) => {
                    self.shared.shut_in(&self.sandbox.id);
                    if let Err(error) = self.runtime.destroy(&self.sandbox.id).await {
                        error!(sandbox = %self.sandbox.id, error = chain(&error), "could not undo a sandbox that could not be started or recorded");
                    }
                    failure
                }
            },
            Err(error) => self.not_made(error),
        };
        Counters::count(&self.shared.counters.not_made);
        let detail = chain(&failure);
        warn!(sandbox = %self.sandbox.id, project = %self.sandbox.project, class = %self.sandbox.class, error = detail, "a sandbox could not be made");
        let end = SandboxEnd { cause: EndCause::NotMade, detail, at: Timestamp::now() };
        if let Err(error) = self.advance(SandboxState::Failed, |sandbox| sandbox.end = Some(end)).await {
            error!(sandbox = %self.sandbox.id, error = chain(&error), "could not record that a sandbox was not made");
        }
        Err(failure)
    }

    /// Lets it out, starts what its template starts, and records that it runs.
    async fn first_run(&mut self, execution: &Execution) -> Result<(), CoreError> {
        self.shared.let_out(&self.runtime, &self.sandbox).await?;
        if !self.begins_with_memory() {
            self.start_up(&execution.id).await?;
            self.keep_warm().await;
        }
        Ok(self.start(Timestamp::now()).await?)
    }

    fn not_made(&self, error: RuntimeError) -> CoreError {
        match error {
            RuntimeError::Invalid(invalid) => CoreError::Invalid(invalid),
            RuntimeError::Exhausted { resource } => {
                Counters::count(&self.shared.counters.busy);
                CoreError::Busy { reason: format!("the host is out of {resource}"), retry_after: Duration::from_secs(1) }
            }
            error @ RuntimeError::Unsupported { .. } => CoreError::Runtime(error),
            error => CoreError::NotMade { id: self.sandbox.id.clone(), detail: chain(&error) },
        }
    }

    /// Records that the sandbox runs, and winds up its timers.
    pub(crate) async fn start(&mut self, started_at: Timestamp) -> Result<(), StoreError> {
        self.advance(SandboxState::Running, |sandbox| sandbox.started_at = sandbox.started_at.or(Some(started_at))).await?;
        self.wind_up(Duration::ZERO);
        info!(sandbox = %self.sandbox.id, project = %self.sandbox.project, class = %self.sandbox.class, template = %self.sandbox.template, "sandbox runs");
        Ok(())
    }

    /// Takes up a sandbox that runs and that another server made.
    pub(crate) async fn take_up(&mut self, execution: &Execution, grace: Duration) -> Result<(), CoreError> {
        self.shared.let_out_again(&self.runtime, &self.sandbox).await;
        match self.sandbox.state {
            SandboxState::Creating => self.start(execution.started_at.into()).await?,
            SandboxState::Running => {}
            _ => self.run_again(execution.id.clone(), None).await?,
        }
        self.wind_up(grace);
        Ok(())
    }

    /// Sets the timers from what is stored. A clock that jumped back gives no sandbox more than its lease was long; one whose lease ran out
    /// while nobody watched gets `grace`.
    pub(crate) fn wind_up(&mut self, grace: Duration) {
        let now = Timestamp::now();
        self.lease_ends = self.sandbox.expires_at.map(|at| {
            let whole = self.sandbox.leased_at.until(at);
            Instant::now() + now.until(at).min(whole).max(grace.min(whole))
        });
        self.wall_ends = self.sandbox.spec.limits.wall_time.map(|limit| {
            let started = self.sandbox.started_at.unwrap_or(now);
            Instant::now() + now.until(started.plus(limit).plus(self.sandbox.stood_still)).min(limit)
        });
    }

    /// Owns a sandbox that runs or stands still, until its end.
    pub(crate) async fn own(mut self) {
        loop {
            let next = match self.owed.take() {
                Some(owed) => self.settle(owed).await,
                None if self.sandbox.state == SandboxState::Paused => self.own_paused().await,
                None => self.own_running().await,
            };
            match next {
                Next::Again => {}
                Next::End(cause, detail, reply) => return self.end(cause, detail, reply).await,
                Next::Gone => return,
            }
        }
    }

    async fn own_running(&mut self) -> Next {
        let mut ended = Box::pin(wait_for_end(Arc::clone(&self.runtime), self.sandbox.id.clone()));
        let _running = self.begin_to_run();
        let ears = self.listen();
        let stir = Arc::clone(&self.meter.stir);
        if let Some(reached) = self.look().await {
            drop((ended, ears));
            return self.stop_for(&reached).await;
        }
        loop {
            let (due_at, cause) = self.next_due();
            let look_at = self.meter.look_at;
            tokio::select! {
                order = self.orders.recv() => match order {
                    Some(Order::Kill(reply)) => return killed(reply),
                    Some(Order::Change(change, reply)) => { let _gone = reply.send(self.change(change).await); }
                    Some(Order::Pause(kind, reply)) => {
                        // An engine cannot tell the end of a sandbox that it is stopping, and nothing may talk to its agent.
                        drop((ended, ears));
                        let _gone = reply.send(self.pause(kind).await);
                        return Next::Again;
                    }
                    Some(Order::Resume(lease, reply)) => {
                        let change = SandboxChange { lease: lease.map(Lease::FromNow), ..SandboxChange::default() };
                        let _gone = reply.send(self.change(change).await);
                    }
                    Some(Order::Snapshot(taking, reply)) => {
                        drop((ended, ears));
                        let _gone = reply.send(self.take_snapshot(taking).await);
                        return Next::Again;
                    }
                    Some(Order::RollBack(to, reply)) => {
                        drop((ended, ears));
                        let _gone = reply.send(self.roll_back(&to).await);
                        return Next::Again;
                    }
                    Some(Order::ReadMeter(reply)) => {
                        self.read_meter(Write::Now).await;
                        let _gone = reply.send(());
                    }
                    None => return Next::Gone,
                },
                (cause, detail) = &mut ended => return self.ended(cause, detail),
                () = look_again(&stir, look_at) => {
                    if let Some(reached) = self.look().await {
                        drop((ended, ears));
                        return self.stop_for(&reached).await;
                    }
                }
                () = tokio::time::sleep_until(due_at) => {
                    // Somebody may have come while the timer ran: idle time is counted anew.
                    if self.next_due().0 <= Instant::now() {
                        drop((ended, ears));
                        return self.run_out(cause).await;
                    }
                }
            }
        }
    }

    /// The engine keeps the limit of wall time too, and may be faster than the timer here: its killing is then no surprise.
    fn in_time(&self, cause: EndCause) -> Option<EndCause> {
        let due = |at: Instant| at <= Instant::now() + CLOCKS_APART;
        (cause == EndCause::Lost && self.wall_ends.is_some_and(due)).then_some(EndCause::WallTime)
    }

    pub(crate) fn ended(&self, cause: EndCause, detail: String) -> Next {
        let (cause, detail) = self.in_time(cause).map_or((cause, detail), |cause| (cause, because(cause, &self.sandbox)));
        Next::End(cause, detail, None)
    }

    /// The next moment at which the sandbox has to end unless something changes, and why.
    fn next_due(&self) -> (Instant, EndCause) {
        let idle = self.sandbox.idle_timeout.map(|timeout| (self.activity.idle_at(timeout), EndCause::Idle));
        let lease = self.lease_ends.map(|at| (at, EndCause::LeaseExpired));
        let wall = self.wall_ends.map(|at| (at, EndCause::WallTime));
        let never = (Instant::now() + Duration::from_secs(365 * 86_400), EndCause::LeaseExpired);
        [wall, lease, idle].into_iter().flatten().min_by_key(|(at, _)| *at).unwrap_or(never)
    }

    pub(crate) async fn change(&mut self, change: SandboxChange) -> Result<Arc<Sandbox>, CoreError> {
        let now = Timestamp::now();
        let state = self.sandbox.state;
        let lease = change.lease.and_then(|lease| match (lease, self.sandbox.expires_at) {
            (Lease::FromNow(length), _) => Some(length),
            (Lease::AtLeast(_), None) => None,
            (Lease::AtLeast(length), Some(at)) => (length > self.sandbox.lease_clock(now).until(at)).then_some(length),
        });
        let rewound = lease.is_some();
        let policy = change.policy.map(|own| self.shared.rule_again(&self.sandbox, &own)).transpose()?;
        let ruled = policy.is_some();
        self.advance(state, |sandbox| {
            if let Some(metadata) = change.metadata {
                sandbox.metadata = metadata;
            }
            if let Some(timeout) = change.idle_timeout {
                sandbox.idle_timeout = timeout;
            }
            if let Some(what) = change.on_timeout {
                sandbox.on_timeout = what;
            }
            if policy.is_some() {
                sandbox.spec.policy = policy;
            }
            if let Some(length) = lease {
                sandbox.leased_at = now;
                sandbox.expires_at = Some(now.plus(length));
            }
        })
        .await?;
        if ruled {
            self.meter.rule(&self.sandbox);
            self.shared.hold(&self.runtime, &self.sandbox).await?;
        }
        if rewound && state == SandboxState::Running {
            self.wind_up(Duration::ZERO);
        }
        Ok(Arc::new(self.sandbox.clone()))
    }
}

/// Waits until a budget may have been reached.
async fn look_again(stir: &Notify, at: Instant) {
    tokio::select! {
        () = stir.notified() => {}
        () = tokio::time::sleep_until(at) => {}
    }
}
