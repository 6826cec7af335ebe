//! A run from beginning to end, and what is told about it.

use std::io;
use std::path::Path;

use belljar_linux::guarded::{self, SignalSource};
use rustix::process::{Signal, getpid, kill_process};

use crate::arguments::say;
use crate::errors::GuardError;
use crate::line::Record;
use crate::plan::{Identity, Network, Plan, Request, STRANGER};
use crate::protect::Protection;
use crate::sweep::{Held, sweep};
use crate::userns;
use crate::watch::{Ending, Watch};

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

/// Runs the command. Must be called before this process has a second thread.
pub fn run(request: Request) -> Result<Outcome, GuardError> {
    let plan = Plan::new(request)?;
    if plan.network == Network::Host {
        say("warning: --net host gives the command the whole network of this machine, its local services included");
    }
    if plan.verbose {
        describe(&plan);
    }
    if plan.identity == Identity::Stranger {
        give_pipes_to_stranger();
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

/// Scripts open `/dev/stderr` again, which the owner of a pipe may. Pipes without a name are changed only: nobody else can open those.
fn give_pipes_to_stranger() {
    const PIPES: u64 = 0x5049_5045;
    let (user, group) = (rustix::fs::Uid::from_raw(STRANGER), rustix::fs::Gid::from_raw(STRANGER));
    for stream in [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()] {
        if rustix::fs::fstatfs(stream).is_ok_and(|found| u64::try_from(found.f_type) == Ok(PIPES)) {
            // Without it they can still be used, only not opened again.
            let _ = rustix::fs::fchown(stream, Some(user), Some(group));
        }
    }
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
    let program = plan.command.first().map_or(Path::new(""), Path::new);
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
