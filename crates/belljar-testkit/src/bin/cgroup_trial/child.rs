//! The processes that are put into groups: this same program in another role.
//!
//! Each waits for a line on its input before it begins, so that its maker can move it into a group first, and ends when that input ends, so
//! that nothing outlives the trial.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use belljar_linux::cgroup::{Cgroup, CgroupError};

/// Long enough for any check, short enough that a trial that was shot leaves no bombs behind.
const BOMB_LIFE: Duration = Duration::from_secs(30);

/// A running child; killed and reaped when dropped.
pub(crate) struct Actor {
    process: Child,
    input: ChildStdin,
    output: Option<BufReader<ChildStdout>>,
}

impl Actor {
    /// Starts a child that waits for [`Actor::begin`].
    pub(crate) fn waiting(role: &[&str]) -> io::Result<Self> {
        let mut process = itself(role)?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        match (process.stdin.take(), process.stdout.take()) {
            (Some(input), Some(output)) => Ok(Self { process, input, output: Some(BufReader::new(output)) }),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Starts a child that begins inside a group.
    pub(crate) fn inside(group: &Cgroup, role: &[&str]) -> Result<Self, Box<dyn std::error::Error>> {
        let mut actor = Self::waiting(role)?;
        group.attach(actor.pid()).map_err(|error: CgroupError| Box::new(error))?;
        actor.begin()?;
        Ok(actor)
    }

    pub(crate) fn begin(&mut self) -> io::Result<()> {
        self.input.write_all(b"begin\n")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The next line it prints; empty if it ended instead.
    pub(crate) fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if let Some(output) = &mut self.output {
            output.read_line(&mut line)?;
        }
        Ok(line.trim_end().to_owned())
    }

    /// Its output, to be read elsewhere.
    pub(crate) fn take_output(&mut self) -> Option<impl Read + Send + use<>> {
        self.output.take()
    }

    /// How it ended, if it did.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.process.try_wait()
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // Both fail only if it is gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Plays a role in this process.
pub(crate) fn play(role: &str, arguments: &[String]) -> ExitCode {
    let number = || arguments.first().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    if let ("bomb", Some(_)) = (role, arguments.first()) {
        return explode(number());
    }
    let mut line = String::new();
    let played = io::stdin().lock().read_line(&mut line).and_then(|_| match role {
        "rest" => Ok(()),
        "eat" => eat(number()),
        "spin" => spin(number()),
        "count" => count(),
        "multiply" => multiply(number()),
        "bomb" => {
            explode((now() + BOMB_LIFE).as_secs());
            Ok(())
        }
        "enter" => enter(arguments),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    });
    match played.and_then(|()| rest()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Until the trial is over.
fn rest() -> io::Result<()> {
    io::copy(&mut io::stdin().lock(), &mut io::sink()).map(drop)
}

/// Takes memory and writes to every page of it.
fn eat(bytes: u64) -> io::Result<()> {
    let length = usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut meal = Vec::with_capacity(length);
    meal.resize(length, 1u8);
    std::hint::black_box(&meal);
    say("ate")?;
    rest()
}

fn spin(threads: u64) -> io::Result<()> {
    for _ in 0..threads {
        thread::spawn(|| {
            loop {
                std::hint::spin_loop();
            }
        });
    }
    Ok(())
}

/// A byte for every step, so that a reader sees whether it moves. Ends with its reader.
fn count() -> io::Result<()> {
    loop {
        io::stdout().write_all(b".")?;
        io::stdout().flush()?;
        thread::sleep(Duration::from_millis(1));
    }
}

/// Tries to start this many further processes and says how many it got.
fn multiply(wanted: u64) -> io::Result<()> {
    let got: Vec<_> = (0..wanted).filter_map(|_| itself(&["rest"]).ok()?.spawn().ok()).collect();
    say(&got.len().to_string())?;
    rest()
}

/// Starts processes that do the same, until a point in time (seconds since 1970).
fn explode(until: u64) -> ExitCode {
    while now().as_secs() < until {
        // Refused when the group is full, which is where this is meant to run.
        let _ = itself(&["bomb", &until.to_string()]).and_then(|mut command| command.stdin(Stdio::null()).spawn());
    }
    ExitCode::SUCCESS
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Puts itself into a group, as a launcher's child does.
fn enter(procs_files: &[String]) -> io::Result<()> {
    procs_files.iter().try_for_each(|file| std::fs::write(file, "0"))?;
    say("entered")
}

fn say(text: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{text}")?;
    io::stdout().flush()
}

fn itself(role: &[&str]) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(role);
    Ok(command)
}
