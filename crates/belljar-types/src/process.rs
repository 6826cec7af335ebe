//! Processes inside a sandbox. Output is kept by byte offset, so that a reader can leave, come back and lose nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;

use crate::{GuestPath, Invalid, ProcessId};

/// A user name inside the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UserName(String);

impl UserName {
    /// The user that processes run as unless told otherwise.
    pub const DEFAULT: &str = "user";

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for UserName {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let ok =
            (1..=32).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'$'));
        if ok { Ok(Self(text.to_owned())) } else { Err(Invalid::new("user", "1 to 32 of A-Z, a-z, 0-9, '_', '-', '.' and '$'", text)) }
    }
}

impl TryFrom<String> for UserName {
    type Error = Invalid;
    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl From<UserName> for String {
    fn from(name: UserName) -> String {
        name.0
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PtySize {
    /// Characters in a row.
    pub columns: u16,
    /// Rows.
    pub rows: u16,
}

/// A signal's number, 1 to 64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signal(u8);

impl Signal {
    /// Interrupt, as Ctrl-C sends.
    pub const INT: Self = Self(2);
    /// Cannot be caught.
    pub const KILL: Self = Self(9);
    /// Please end.
    pub const TERM: Self = Self(15);

    /// Takes a number from 1 to 64.
    pub fn new(number: i32) -> Result<Self, Invalid> {
        match u8::try_from(number) {
            Ok(n @ 1..=64) => Ok(Self(n)),
            _ => Err(Invalid::new("signal", "a number from 1 to 64", number.to_string())),
        }
    }

    /// The number.
    pub fn number(self) -> u8 {
        self.0
    }
}

/// Which of a process's outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamKind {
    /// Standard output; for a pty, everything.
    Stdout,
    /// Standard error; empty for a pty.
    Stderr,
}

/// What to do when a process writes more than its spool holds and nobody takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Overflow {
    /// Forget the oldest bytes; readers are told exactly which.
    #[default]
    DropOldest,
    /// Stop taking output, so that the writer waits until readers have caught up.
    Slow,
    /// Kill the process.
    Kill,
}

/// How much output is kept, and what happens beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpoolPolicy {
    /// Bytes kept per stream.
    pub capacity: u32,
    /// What happens beyond it.
    pub overflow: Overflow,
}

impl SpoolPolicy {
    /// The most a caller may ask for.
    pub const MAX_CAPACITY: u32 = 16 << 20;
}

impl Default for SpoolPolicy {
    fn default() -> Self {
        Self { capacity: 1 << 20, overflow: Overflow::DropOldest }
    }
}

/// A process to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessSpec {
    /// Its id: starting the same id again answers with the process that is there.
    pub id: ProcessId,
    /// Program and arguments; the program is looked up in `PATH`.
    pub argv: Vec<Vec<u8>>,
    /// Environment over the sandbox's and the user's.
    pub env: BTreeMap<String, String>,
    /// Where it starts; the template's workdir, or the user's home, when unset.
    pub cwd: Option<GuestPath>,
    /// Who runs it; the default user when unset.
    pub user: Option<UserName>,
    /// Keep standard input open for writing; otherwise it reads end of file at once.
    pub stdin: bool,
    /// Give it a terminal of this size.
    pub pty: Option<PtySize>,
    /// A word of the caller's, to find it again.
    pub tag: Option<String>,
    /// Kill it, and whatever it started, after this long.
    pub deadline: Option<Duration>,
    /// What happens to its output.
    pub spool: SpoolPolicy,
}

impl ProcessSpec {
    /// A process with defaults for everything but its command.
    pub fn new<A: AsRef<[u8]>>(argv: impl IntoIterator<Item = A>) -> Self {
        Self {
            id: ProcessId::random(),
            argv: argv.into_iter().map(|a| a.as_ref().to_vec()).collect(),
            env: BTreeMap::new(),
            cwd: None,
            user: None,
            stdin: false,
            pty: None,
            tag: None,
            deadline: None,
            spool: SpoolPolicy::default(),
        }
    }

    /// Refuses what no kernel would take.
    pub fn validate(&self) -> Result<(), Invalid> {
        match self.argv.first() {
            None => return Err(Invalid::new("argv", "at least the program", "")),
            Some(program) if program.is_empty() => return Err(Invalid::new("argv[0]", "a program's name", "")),
            Some(_) => {}
        }
        if let Some(arg) = self.argv.iter().find(|arg| arg.contains(&0)) {
            return Err(Invalid::new("argv", "no NUL byte", arg));
        }
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(Invalid::new("env", "names without '=' and NUL", name));
            }
            if value.contains('\0') {
                return Err(Invalid::new(format!("env.{}", crate::escape_untrusted(name.as_bytes())), "no NUL byte", value));
            }
        }
        if let Some(PtySize { columns: 0, .. } | PtySize { rows: 0, .. }) = self.pty {
            return Err(Invalid::new("pty", "at least 1 column and 1 row", "0"));
        }
        if self.tag.as_ref().is_some_and(|tag| tag.len() > 256) {
            return Err(Invalid::new("tag", "at most 256 bytes", self.tag.as_deref().unwrap_or_default()));
        }
        if !(1024..=SpoolPolicy::MAX_CAPACITY).contains(&self.spool.capacity) {
            return Err(Invalid::new("spool.capacity", format!("1024 to {}", SpoolPolicy::MAX_CAPACITY), self.spool.capacity.to_string()));
        }
        if self.deadline.is_some_and(|deadline| deadline.is_zero()) {
            return Err(Invalid::new("deadline", "more than zero", "0"));
        }
        Ok(())
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Termination {
    /// It exited with this code.
    Exited(i32),
    /// This signal ended it.
    Signaled(u8),
}

/// Why Belljar ended a process, if it was Belljar or the kernel's memory limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KillCause {
    /// Its deadline passed.
    Deadline,
    /// It wrote more than its spool holds, and the caller chose to kill.
    Overflow,
    /// The kernel killed it for memory (as the host's counters show).
    OutOfMemory,
}

/// The end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ExitStatus {
    /// Code or signal.
    pub termination: Termination,
    /// Who ended it, if it did not end by itself or by a signal that was asked for.
    pub cause: Option<KillCause>,
}

/// Positions in a process's output, in bytes since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Offsets {
    /// In standard output.
    pub stdout: u64,
    /// In standard error.
    pub stderr: u64,
}

/// A process as the agent knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessInfo {
    /// Its id.
    pub id: ProcessId,
    /// Its number inside the sandbox.
    pub pid: u32,
    /// Program and arguments.
    pub argv: Vec<Vec<u8>>,
    /// The caller's word.
    pub tag: Option<String>,
    /// Who runs it.
    pub user: UserName,
    /// Whether it has a terminal.
    pub pty: bool,
    /// When it started, milliseconds since 1970 by the sandbox's clock.
    pub started_at_millis: u64,
    /// How it ended, if it did.
    pub exit: Option<ExitStatus>,
    /// Bytes written so far.
    pub written: Offsets,
    /// Bytes of standard input taken so far.
    pub stdin_offset: u64,
}

/// What a reader of a process's output gets, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputEvent {
    /// Bytes at their offset.
    Data {
        /// From which stream.
        stream: StreamKind,
        /// Offset of the first byte.
        offset: u64,
        /// The bytes.
        bytes: Bytes,
    },
    /// These bytes are no longer kept.
    Gap {
        /// Of which stream.
        stream: StreamKind,
        /// First missing byte.
        from: u64,
        /// First byte after the gap.
        to: u64,
    },
    /// The process ended and all its output was given; nothing follows.
    Exit(ExitStatus),
}
