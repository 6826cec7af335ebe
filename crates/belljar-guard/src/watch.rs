//! The guard while the command runs: makes the first process, hands signals and the terminal on, and knows when everything has ended.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use belljar_linux::guarded::{self, Namespaces, SignalSource};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, setpgid, waitpid};

use crate::errors::GuardError;
use crate::line::{Line, Record};
use crate::plan::{IDS, Identity, Network, Plan, STRANGER};
use crate::terminal::Terminal;
use crate::{inside, userns};

/// Between asking the command to end and ending it.
const GRACE: Duration = Duration::from_secs(2);

/// How everything inside ended.
#[derive(Debug)]
pub(crate) enum Ending {
    Told(Record),
    /// The first process was killed before it could tell.
    Silent,
    TimedOut,
    /// Because this signal came to the guard.
    Asked(i32),
}

/// A sandbox that runs.
pub(crate) struct Watch {
    line: Line,
    first: Pid,
    signals: Option<SignalSource>,
    terminal: Option<Terminal>,
    timeout: Option<Instant>,
    /// When patience ends.
    killed_at: Option<Instant>,
    asked: Option<Ending>,
}

impl Watch {
    /// Starts it.
    pub(crate) fn start(plan: &Plan, signals: SignalSource) -> Result<Self, GuardError> {
        let mut ends = Some(Line::pair().map_err(GuardError::Watch)?);
        let namespaces = match plan.network {
            Network::None => Namespaces::Own,
            Network::Host => Namespaces::OwnButNetwork,
        };
        let cgroup = plan.enforced.membership.unified.as_ref().map(AsFd::as_fd);
        let life = || {
            let Some((ours, theirs)) = ends.take() else { return 1 };
            drop(ours);
            inside::life(plan, &theirs, &signals)
        };
        let pid = guarded::copy_of_this_process(namespaces, cgroup, life)
            .map_err(|source| GuardError::Namespaces { advice: userns::advice(&source), source })?;
        let first = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(|| GuardError::Watch(io::ErrorKind::InvalidData.into()))?;
        let Some((line, _)) = ends.take() else { return Err(GuardError::Watch(io::ErrorKind::BrokenPipe.into())) };
        let timeout = plan.timeout.map(|timeout| Instant::now() + timeout);
        let mut watch = Self { line, first, signals: Some(signals), terminal: None, timeout, killed_at: None, asked: None };
        if let Err(source) = watch.let_go(plan) {
            watch.kill();
            let _ = waitpid(Some(first), WaitOptions::empty());
            return Err(GuardError::MapIds(source));
        }
        Ok(watch)
    }

    fn let_go(&mut self, plan: &Plan) -> io::Result<()> {
        map_ids(self.first, plan)?;
        setpgid(Some(self.first), Some(self.first))?;
        self.terminal = Terminal::of(self.first);
        if let Some(terminal) = &mut self.terminal {
            terminal.hand_over_if_interactive();
        }
        self.line.release()
    }

    /// Returns when nothing inside can run any more.
    pub(crate) fn until_the_end(&mut self) -> Result<Ending, GuardError> {
        let mut told = None;
        loop {
            let Some(ready) = self.wait().map_err(GuardError::Watch)? else { continue };
            if ready.signals {
                self.pass_signals_on().map_err(GuardError::Watch)?;
            }
            if !ready.line {
                continue;
            }
            match self.line.hear().map_err(GuardError::Watch)? {
                None => break,
                Some(Record::Stopped(signal)) => self.stopped(signal),
                // What could not be executed exits too; the reason is the first thing told.
                Some(record) => told = told.or(Some(record)),
            }
        }
        Ok(match (self.asked.take(), told) {
            (Some(Ending::TimedOut), _) => Ending::TimedOut,
            (_, Some(record)) => Ending::Told(record),
            (Some(asked), None) => asked,
            (None, None) => Ending::Silent,
        })
    }

    /// Waits for something to happen; `None` if only time passed.
    fn wait(&mut self) -> io::Result<Option<Ready>> {
        let Some(signals) = &self.signals else { return Ok(None) };
        let next = [self.killed_at, self.timeout].into_iter().flatten().min();
        let left = next.map(|at| at.saturating_duration_since(Instant::now()));
        let left = left.map(|left| Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() });
        let mut polled = [PollFd::new(&self.line, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        match poll(&mut polled, left.as_ref()) {
            Ok(0) => {
                self.time_passed();
                Ok(None)
            }
            Ok(_) => {
                let [line, signals] = polled;
                Ok(Some(Ready { line: !line.revents().is_empty(), signals: !signals.revents().is_empty() }))
            }
            Err(rustix::io::Errno::INTR) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    fn time_passed(&mut self) {
        let now = Instant::now();
        if self.killed_at.is_some_and(|at| at <= now) {
            self.killed_at = None;
            self.kill();
        }
        if self.timeout.is_some_and(|at| at <= now) {
            self.timeout = None;
            self.ask_to_end(Signal::TERM, Ending::TimedOut);
        }
    }

    fn pass_signals_on(&mut self) -> io::Result<()> {
        while let Some(number) = self.signals.as_ref().map_or(Ok(None), SignalSource::next)? {
            match Signal::from_named_raw(number) {
                Some(signal @ (Signal::TERM | Signal::HUP)) => self.ask_to_end(signal, Ending::Asked(number)),
                Some(Signal::TSTP) => {
                    let _ = kill_process_group(self.first, Signal::STOP);
                    self.stop_too();
                }
                Some(Signal::TTOU) | None => {}
                Some(signal) => {
                    let _ = kill_process_group(self.first, signal);
                }
            }
        }
        Ok(())
    }

    /// The first time politely, with some patience; the second time at once.
    fn ask_to_end(&mut self, signal: Signal, why: Ending) {
        if self.asked.is_some() {
            self.kill();
        }
        self.asked.get_or_insert(why);
        let _ = kill_process_group(self.first, signal);
        // What is stopped does not hear.
        let _ = kill_process_group(self.first, Signal::CONT);
        self.killed_at = Some(Instant::now() + GRACE);
    }

    /// Ends the first process, and with it everything inside.
    fn kill(&self) {
        let _ = kill_process(self.first, Signal::KILL);
    }

    /// Does what a shell does when a job of its stops.
    fn stopped(&mut self, signal: i32) {
        let wants_terminal = signal == Signal::TTIN.as_raw() || signal == Signal::TTOU.as_raw();
        let is_given = |terminal: &mut Terminal| terminal.hand_over();
        if wants_terminal && self.terminal.as_mut().is_some_and(is_given) {
            let _ = kill_process_group(self.first, Signal::CONT);
        } else {
            self.stop_too();
        }
    }

    fn stop_too(&mut self) {
        let had_it = self.terminal.as_ref().is_some_and(Terminal::is_handed_over);
        if let Some(terminal) = &mut self.terminal {
            terminal.take_back();
        }
        // Stands still here until somebody continues us.
        let _ = kill_process(getpid(), Signal::STOP);
        if let Some(terminal) = self.terminal.as_mut().filter(|_| had_it) {
            terminal.hand_over();
        }
        let _ = kill_process_group(self.first, Signal::CONT);
    }

    /// Reaps and gives everything back. Says whether the command was interrupted from the terminal.
    pub(crate) fn finish(mut self, ending: &Result<Ending, GuardError>) -> bool {
        if ending.is_err() {
            self.kill();
        }
        // When the first process is reaped, nothing inside is left.
        while let Err(rustix::io::Errno::INTR) = waitpid(Some(self.first), WaitOptions::empty()) {}
        let at_terminal = self.terminal.take().is_some_and(|terminal| terminal.is_handed_over());
        if let Some(signals) = self.signals.take() {
            signals.release();
        }
        at_terminal && matches!(ending, Ok(Ending::Told(Record::Killed(signal))) if *signal == Signal::INT.as_raw())
    }
}

struct Ready {
    line: bool,
    signals: bool,
}

fn map_ids(first: Pid, plan: &Plan) -> io::Result<()> {
    let process = Path::new("/proc").join(first.as_raw_nonzero().to_string());
    let (users, groups) = match plan.identity {
        Identity::Stranger => {
            let map = format!("0 {STRANGER} {IDS}\n");
            (map.clone(), map)
        }
        Identity::Caller { uid, gid } => {
            // Otherwise a group that keeps its members out could be left.
            fs::write(process.join("setgroups"), "deny")?;
            (format!("{uid} {uid} 1\n"), format!("{gid} {gid} 1\n"))
        }
    };
    fs::write(process.join("uid_map"), users)?;
    fs::write(process.join("gid_map"), groups)
}
