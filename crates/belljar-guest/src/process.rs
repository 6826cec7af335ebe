//! Processes that were started through the agent: found by id, remembered for a while after their end.
//!
//! ```text
//!  start ──▶ running ──▶ died (reaped, last output still being read) ──▶ exited ──▶ forgotten
//! ```
//! At most [`KEPT`] exited processes are remembered, and at most [`LIVING`] live at once.

mod channel;
mod environment;
mod kill;
mod launch;
mod pump;
mod reaper;
mod record;
mod spool;
mod stdin;
mod sudo;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;

use belljar_guest_protocol::{Failure, FailureCode};
use belljar_types::{ProcessId, ProcessSpec, escape_untrusted};
use tokio::sync::Notify;

pub(crate) use channel::Channel;
pub(crate) use environment::Environment;
pub(crate) use kill::{kill_family, tell_window_changed};
pub(crate) use launch::{Launched, open_terminal};
pub(crate) use reaper::Reaper;
pub(crate) use record::{Process, ReaderGuard};
pub(crate) use spool::Found;
pub(crate) use sudo::sudo_launch;

use crate::users::{UserPolicy, Users};
use spool::Budget;

const KEPT: usize = 256;
const LIVING: usize = 1024;

enum Slot {
    /// Being started; told when that is over.
    Starting(Rc<Notify>),
    There(Rc<Process>),
}

/// All processes.
pub(crate) struct Processes {
    slots: RefCell<HashMap<ProcessId, Slot>>,
    exited: RefCell<VecDeque<ProcessId>>,
    budget: Rc<Budget>,
    pub(crate) reaper: Rc<Reaper>,
    users: UserPolicy,
    pub(crate) environment: Environment,
}

impl Processes {
    pub(crate) fn new(users: UserPolicy, env: BTreeMap<String, String>, workdir: Option<String>) -> Rc<Self> {
        Rc::new(Self {
            slots: RefCell::default(),
            exited: RefCell::default(),
            budget: Rc::default(),
            reaper: Rc::default(),
            users,
            environment: Environment { env: RefCell::new(env), workdir },
        })
    }

    /// The process with this id.
    pub(crate) fn find(&self, id: &str) -> Result<Rc<Process>, Failure> {
        let found = id.parse().ok().and_then(|id: ProcessId| match self.slots.borrow().get(&id) {
            Some(Slot::There(process)) => Some(Rc::clone(process)),
            _ => None,
        });
        found.ok_or_else(|| Failure::of(FailureCode::NoProcess, format!("no process {}", escape_untrusted(id.as_bytes()))))
    }

    /// All that are known, in the order of their start.
    pub(crate) fn all(&self) -> Vec<Rc<Process>> {
        let slots = self.slots.borrow();
        let there = slots.values().filter_map(|slot| if let Slot::There(process) = slot { Some(Rc::clone(process)) } else { None });
        let mut all: Vec<_> = there.collect();
        all.sort_by_key(|process| (process.started_at_millis, process.pid));
        all
    }

    /// Starts a process, or finds the one with this id that was started before.
    pub(crate) async fn start(self: &Rc<Self>, spec: ProcessSpec) -> Result<Rc<Process>, Failure> {
        let done = loop {
            let starting = match self.slots.borrow().get(&spec.id) {
                Some(Slot::There(process)) => return Ok(Rc::clone(process)),
                Some(Slot::Starting(done)) => Rc::clone(done),
                None => break Rc::new(Notify::new()),
            };
            starting.notified().await;
        };
        if self.slots.borrow().len() - self.exited.borrow().len() >= LIVING {
            return Err(Failure::refused(11, format!("the agent runs {LIVING} processes already")));
        }
        self.slots.borrow_mut().insert(spec.id.clone(), Slot::Starting(Rc::clone(&done)));
        // On a task of its own: a caller that hangs up must not leave a process that nobody knows.
        let this = Rc::clone(self);
        let id = spec.id.clone();
        let started = tokio::task::spawn_local(async move {
            let started = this.launch(spec).await;
            match &started {
                Ok(process) => this.slots.borrow_mut().insert(id, Slot::There(Rc::clone(process))),
                Err(_) => this.slots.borrow_mut().remove(&id),
            };
            done.notify_waiters();
            started
        });
        started.await.unwrap_or_else(|_| Err(Failure::refused(0, "starting the process was cut short")))
    }

    async fn launch(self: &Rc<Self>, spec: ProcessSpec) -> Result<Rc<Process>, Failure> {
        let users = self.users.clone();
        let asked = spec.user.clone();
        let user = crate::blocking::run(move || users.resolve(&Users::read(), asked.as_ref())).await?;
        let launch = self.environment.launch(&spec, &user)?;
        let launched = self.reaper.launch(launch).await?;
        Ok(Process::begin(self, spec, &user, launched))
    }

    /// Remembers the end of a process, and forgets the oldest ends.
    fn note_exit(&self, id: &ProcessId) {
        let mut exited = self.exited.borrow_mut();
        exited.push_back(id.clone());
        while exited.len() > KEPT || (exited.len() > 1 && self.budget.is_tight()) {
            if let Some(oldest) = exited.pop_front()
                && let Some(Slot::There(process)) = self.slots.borrow_mut().remove(&oldest)
            {
                process.forget_output();
            }
        }
    }

    /// Room for output is short: forgets the oldest process that has exited.
    fn make_room(&self) -> bool {
        let oldest = self.exited.borrow_mut().pop_front();
        let slot = oldest.and_then(|id| self.slots.borrow_mut().remove(&id));
        if let Some(Slot::There(process)) = slot {
            process.forget_output();
            return true;
        }
        false
    }

    /// Passes a signal of the sandbox's on to everything that was started here.
    pub(crate) fn signal_all(&self, signal: rustix::process::Signal) {
        for process in self.all() {
            process.signal_group(signal);
        }
    }
}
