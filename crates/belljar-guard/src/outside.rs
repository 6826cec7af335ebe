//! The guard's own part: makes the first process, and stays until everything inside has ended.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use belljar_linux::guarded::{self, Namespaces, SignalSource};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, setpgid, waitpid};

use crate::arguments::say;
use crate::errors::GuardError;
use crate::line::{Line, Record};
use crate::plan::{IDS, Identity, Network, Plan, Request, STRANGER};
use crate::protect::Protection;
use crate::sweep::{Held, sweep};
use crate::terminal::Terminal;
use crate::{inside, userns};

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// The exit code.
    pub code: u8,
    /// What the person at the terminal should know.
    pub notes: Vec<String>,
}

const TIMED_OUT: u8 = 124;
const CANNOT_EXECUTE: u8 = 126;
const NOT_FOUND: u8 = 127;
const BY_SIGNAL: i32 = 128;
/// Between asking the command to end and ending it.
const GRACE: Duration = Duration::from_secs(2);

/// Runs the command. Must be called before this process has a second thread.
pub fn run(request: Request) -> Result<Outcome, GuardError> {
    let plan = Plan::new(request)?;
    if plan.network == Network::Host {
        say("warning: --net host gives the command the whole network of this machine, its local services included");
    }
    if plan.verbose {
        describe(&plan);
    }
    guarded::close_descriptors_on_exec().map_err(GuardError::Watch)?;
    let taken = [Signal::INT, Signal::QUIT, Signal::TERM, Signal::HUP, Signal::USR1, Signal::USR2, Signal::TSTP, Signal::TTOU];
    let signals = SignalSource::of(&taken.map(Signal::as_raw)).map_err(GuardError::Watch)?;
    let mut watch = Watch::start(&plan, signals)?;
    let ending = watch.until_the_end();
    let was_interrupted_at_terminal = watch.finish(&ending);
    let mut outcome = conclude(&plan, ending?)?;
    for held in sweep(&plan.cwd, &plan.protected.missing) {
        outcome.notes.push(match held {
            Held::Moved(from, to) => format!(
                "the command made {}, which other programs obey without asking; it is now {} (--allow {} lets it)",
                from.display(),
                to.display(),
                from.display()
            ),
            Held::Left(path, why) => {
                format!("the command made {}, which could not be set aside: {why}; look at it before you go on", path.display())
            }
        });
    }
    if plan.enforced.ran_out_of_memory() {
        outcome.notes.push("the kernel ended a process of the command because --memory was used up".to_owned());
    }
    drop(plan);
    if was_interrupted_at_terminal {
        // Dying of it ourselves is what makes a shell end its loop, too.
        let _ = kill_process(getpid(), Signal::INT);
    }
    Ok(outcome)
}

/// How everything inside ended.
#[derive(Debug)]
enum Ending {
    Told(Record),
    /// The first process was killed before it could tell.
    Silent,
    TimedOut,
    /// Because this signal came to the guard.
    Asked(i32),
}

struct Watch {
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
    fn start(plan: &Plan, signals: SignalSource) -> Result<Self, GuardError> {
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

    fn until_the_end(&mut self) -> Result<Ending, GuardError> {
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
    fn finish(mut self, ending: &Result<Ending, GuardError>) -> bool {
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
            let count = if plan.template_root.is_some() { IDS } else { 1 };
            let map = format!("0 {STRANGER} {count}\n");
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

fn conclude(plan: &Plan, ending: Ending) -> Result<Outcome, GuardError> {
    let by_signal = |signal: i32| u8::try_from(BY_SIGNAL + signal).unwrap_or(u8::MAX);
    let mut notes = Vec::new();
    let code = match ending {
        Ending::Told(Record::Failed(failure)) => {
            let advice = userns::advice_inside(failure.step, &failure.source);
            return Err(GuardError::Inside { step: failure.step, path: failure.path, advice, source: failure.source });
        }
        Ending::Told(Record::NotExecuted(errno)) => {
            let (code, words) = not_executed(plan, errno);
            notes.push(words);
            code
        }
        Ending::Told(Record::Exited(code)) => u8::try_from(code & 0xff).unwrap_or(u8::MAX),
        Ending::Told(Record::Killed(signal) | Record::Stopped(signal)) | Ending::Asked(signal) => by_signal(signal),
        Ending::Silent => by_signal(Signal::KILL.as_raw()),
        Ending::TimedOut => {
            notes.push("the command was ended because --timeout passed".to_owned());
            TIMED_OUT
        }
    };
    Ok(Outcome { code, notes })
}

fn not_executed(plan: &Plan, errno: i32) -> (u8, String) {
    let program = plan.command.first().map(Path::new).unwrap_or(Path::new(""));
    let cause = io::Error::from_raw_os_error(errno);
    if cause.kind() != io::ErrorKind::NotFound {
        return (CANNOT_EXECUTE, format!("{} cannot be executed ({cause})", program.display()));
    }
    let mut words = format!("{} was not found in the sandbox", program.display());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_host = std::env::split_paths(&path).map(|directory| directory.join(program)).find(|candidate| candidate.is_file());
    if let Some(found) = on_host.as_deref().and_then(Path::parent) {
        words.push_str(&format!("; on this machine it is in {}: show that, and what it needs, with --ro", found.display()));
    }
    (NOT_FOUND, words)
}

fn describe(plan: &Plan) {
    for shown in &plan.shown {
        say(&format!("{} is shown, {}", shown.path.display(), if shown.writable { "writable" } else { "read-only" }));
    }
    for (path, protection) in &plan.protected.paths {
        let words = match protection {
            Protection::Hidden => "is hidden",
            Protection::ReadOnly => "cannot be changed",
            Protection::Pinned => "cannot be moved",
        };
        say(&format!("{} {words}", path.display()));
    }
    if plan.protected.cut_short {
        say("this tree is very large; not all of it was searched for files to protect");
    }
    let names: Vec<_> = plan.environment.iter().map(|(name, _)| name.to_string_lossy()).collect();
    say(&format!("variables: {}", names.join(" ")));
    say(&format!(
        "landlock: {}",
        match belljar_linux::landlock::version() {
            0 | 1 => "this kernel has none that can be used".to_owned(),
            version => format!("interface {version}"),
        }
    ));
}
