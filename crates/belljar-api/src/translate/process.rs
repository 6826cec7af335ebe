//! Processes: what to start, how they ended, signals by name.

use belljar_core::OutputRules;
use belljar_output::{Escapes, Hygiene, Mask};
use belljar_types::{
    ExitStatus, GuestPath, Invalid, KillCause, Offsets, Overflow, ProcessId, ProcessInfo, ProcessSpec, PtySize, Secret, Signal,
    SpoolPolicy, StreamKind, Termination, Timestamp,
};

use super::{fractional_seconds, moment, renamed, word};
use crate::dto::{ExecRequest, ExitView, OffsetsView, OutputRequest, ProcessView, PtyRequest, SignalWord, SpoolRequest, StartRequest};

/// What may be masked in one answer.
const MOST_MASKED: usize = 64;
const MASKABLE: std::ops::RangeInclusive<usize> = 6..=4096;

/// Program and arguments from the two ways to say them.
fn argv(argv: Option<Vec<String>>, command: Option<String>) -> Result<Vec<Vec<u8>>, Invalid> {
    match (argv, command) {
        (Some(argv), None) => Ok(argv.into_iter().map(String::into_bytes).collect()),
        (None, Some(command)) if command.is_empty() => Err(Invalid::new("command", "a line for the shell", "")),
        (None, Some(command)) => Ok(vec![b"/bin/sh".to_vec(), b"-c".to_vec(), command.into_bytes()]),
        (None, None) => Err(Invalid::new("argv", "the program and its arguments, or `command` with a line for the shell", "")),
        (Some(_), Some(_)) => Err(Invalid::new("command", "nothing, because `argv` is given too", "both")),
    }
}

fn cwd(cwd: Option<String>) -> Result<Option<GuestPath>, Invalid> {
    cwd.map(GuestPath::new).transpose().map_err(|error| renamed("cwd", error))
}

fn spool(request: &SpoolRequest) -> Result<SpoolPolicy, Invalid> {
    let words = [("drop-oldest", Overflow::DropOldest), ("slow", Overflow::Slow), ("kill", Overflow::Kill)];
    let defaults = SpoolPolicy::default();
    Ok(SpoolPolicy {
        capacity: request.capacity_bytes.unwrap_or(defaults.capacity),
        overflow: request.overflow.as_deref().map(|text| word("spool.overflow", text, &words)).transpose()?.unwrap_or_default(),
    })
}

/// Refuses what no kernel takes, by the names of this API.
fn checked(spec: ProcessSpec) -> Result<ProcessSpec, Invalid> {
    match spec.validate() {
        Ok(()) => Ok(spec),
        Err(error) if error.field == "spool.capacity" => Err(renamed("spool.capacity_bytes", error)),
        Err(error) => Err(error),
    }
}

pub(crate) fn pty(request: PtyRequest) -> PtySize {
    PtySize { columns: request.columns, rows: request.rows }
}

pub(crate) fn start(request: StartRequest) -> Result<ProcessSpec, Invalid> {
    checked(ProcessSpec {
        id: request.id.map(|id| id.parse()).transpose().map_err(|error| renamed("id", error))?.unwrap_or_else(ProcessId::random),
        argv: argv(request.argv, request.command)?,
        env: request.env,
        cwd: cwd(request.cwd)?,
        user: request.user.map(|user| user.parse()).transpose()?,
        stdin: request.stdin,
        pty: request.pty.map(pty),
        tag: request.tag,
        deadline: request.deadline_seconds.map(|value| fractional_seconds("deadline_seconds", value)).transpose()?,
        spool: spool(&request.spool)?,
    })
}

/// A command whose output is read to its end: its writer waits for us, so that nothing falls out.
pub(crate) fn exec(request: ExecRequest) -> Result<ProcessSpec, Invalid> {
    checked(ProcessSpec {
        env: request.env,
        cwd: cwd(request.cwd)?,
        user: request.user.map(|user| user.parse()).transpose()?,
        stdin: request.stdin.is_some() || request.stdin_base64.is_some(),
        deadline: request.timeout_seconds.map(|value| fractional_seconds("timeout_seconds", value)).transpose()?,
        spool: SpoolPolicy { overflow: Overflow::Slow, ..SpoolPolicy::default() },
        ..ProcessSpec::new(argv(request.argv, request.command)?)
    })
}

/// How output is to be treated: as was asked for, and as the policy wants it. `None` as it came.
pub(crate) fn hygiene(asked: Option<OutputRequest>, rules: Option<OutputRules>, room: usize) -> Result<Option<Hygiene>, Invalid> {
    let rules = rules.filter(|rules| rules.strip_escapes || !rules.secrets.is_empty());
    if asked.is_none() && rules.is_none() {
        return Ok(None);
    }
    let (strips, known) = rules.map_or((false, Vec::new()), |rules| (rules.strip_escapes, rules.secrets));
    let unasked = if strips || asked.is_some() { Escapes::default() } else { Escapes::Keep };
    let asked = asked.unwrap_or_default();
    let words = [("strip", Escapes::Strip), ("show", Escapes::Show), ("keep", Escapes::Keep)];
    let escapes = asked.escapes.as_deref().map_or(Ok(unasked), |text| word("output.escapes", text, &words))?;
    if strips && escapes == Escapes::Keep {
        return Err(Invalid::new("output.escapes", "strip or show, by the sandbox's policy (output.strip_escapes)", "keep"));
    }
    if asked.mask.len() > MOST_MASKED || asked.mask.iter().any(|value| !MASKABLE.contains(&value.len())) {
        return Err(Invalid::new("output.mask", format!("at most {MOST_MASKED} values of 6 to 4096 bytes"), "***"));
    }
    let secrets: Vec<Secret<String>> = asked.mask.into_iter().map(Secret::new).chain(known).collect();
    Ok(Some(Hygiene { escapes, mask: Mask::new(&secrets), room }))
}

pub(crate) fn exit_view(exit: ExitStatus) -> ExitView {
    let (exit_code, signal) = match exit.termination {
        Termination::Exited(code) => (Some(code), None),
        Termination::Signaled(signal) => (None, Some(signal)),
    };
    let cause = exit.cause.map(|cause| match cause {
        KillCause::Deadline => "deadline",
        KillCause::Overflow => "overflow",
        KillCause::OutOfMemory => "out-of-memory",
    });
    ExitView { exit_code, signal, cause }
}

pub(crate) fn process_view(info: &ProcessInfo) -> ProcessView {
    ProcessView {
        id: info.id.to_string(),
        pid: info.pid,
        argv: info.argv.iter().map(|arg| String::from_utf8_lossy(arg).into_owned()).collect(),
        tag: info.tag.clone(),
        user: info.user.to_string(),
        pty: info.pty,
        started_at: moment(Timestamp(info.started_at_millis)),
        state: if info.exit.is_some() { "ended" } else { "running" },
        exit: info.exit.map(exit_view),
        written: offsets_view(info.written),
        stdin_offset: info.stdin_offset,
    }
}

pub(crate) fn offsets_view(offsets: Offsets) -> OffsetsView {
    OffsetsView { stdout: offsets.stdout, stderr: offsets.stderr }
}

pub(crate) fn stream_word(stream: StreamKind) -> &'static str {
    match stream {
        StreamKind::Stdout => "stdout",
        StreamKind::Stderr => "stderr",
    }
}

const SIGNALS: [(&str, i32); 31] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("STKFLT", 16),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("VTALRM", 26),
    ("PROF", 27),
    ("WINCH", 28),
    ("IO", 29),
    ("PWR", 30),
    ("SYS", 31),
];

pub(crate) fn signal(given: &SignalWord) -> Result<Signal, Invalid> {
    let number = match given {
        SignalWord::Number(number) => *number,
        SignalWord::Name(name) => {
            let upper = name.to_ascii_uppercase();
            let short = upper.strip_prefix("SIG").unwrap_or(&upper);
            let known = SIGNALS.iter().find(|(word, _)| *word == short).map(|(_, number)| *number).or_else(|| short.parse().ok());
            known.ok_or_else(|| Invalid::new("signal", "a name such as TERM, or a number from 1 to 64", name))?
        }
    };
    Signal::new(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_said_in_one_of_two_ways() {
        let request = |argv: Option<&[&str]>, command: Option<&str>| StartRequest {
            argv: argv.map(|argv| argv.iter().map(|arg| (*arg).to_owned()).collect()),
            command: command.map(str::to_owned),
            ..StartRequest::default()
        };
        assert_eq!(start(request(None, Some("ls | wc"))).unwrap().argv, [&b"/bin/sh"[..], b"-c", b"ls | wc"]);
        for (argv, command, field) in [
            (None, None, "argv"),
            (Some(&["ls"][..]), Some("ls"), "command"),
            (Some(&[][..]), None, "argv"),
            (Some(&[""][..]), None, "argv[0]"),
            (None, Some(""), "command"),
        ] {
            assert_eq!(start(request(argv, command)).unwrap_err().field, field);
        }
    }

    #[test]
    fn signals_have_names_and_numbers() {
        let named = |name: &str| signal(&SignalWord::Name(name.to_owned())).map(Signal::number);
        assert_eq!(named("TERM"), Ok(15));
        assert_eq!(named("sigkill"), Ok(9));
        assert_eq!(named("10"), Ok(10));
        assert!(named("NOPE").is_err() && named("").is_err() && named("99").is_err());
        assert!(signal(&SignalWord::Number(0)).is_err());
    }
}
