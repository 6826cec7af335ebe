//! Running a command in a sandbox and having all of its output, for tests that are about something else than streams.

use std::time::Duration;

use belljar_ports::{Guest, GuestError, OutputStream};
use belljar_types::{ExitStatus, GuestPath, OutputEvent, Overflow, ProcessSpec, SpoolPolicy, StreamKind, Termination, hex};
use futures_util::StreamExt;
use sha2::{Digest, Sha256};

/// A process that ended, and everything it wrote.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub exit: ExitStatus,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

impl Finished {
    /// Reads a stream to its end. A gap is a failure here: tests that expect one read the stream themselves.
    pub async fn read(mut stream: OutputStream) -> Result<Self, GuestError> {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        while let Some(event) = stream.next().await {
            match event? {
                OutputEvent::Data { stream: StreamKind::Stdout, bytes, .. } => stdout.extend_from_slice(&bytes),
                OutputEvent::Data { stream: StreamKind::Stderr, bytes, .. } => stderr.extend_from_slice(&bytes),
                OutputEvent::Gap { stream, from, to } => panic!("bytes {from}..{to} of {stream:?} fell out"),
                OutputEvent::Exit(exit) => return Ok(Self { exit, stdout, stderr }),
            }
        }
        panic!("the output ended without an exit");
    }

    /// The exit code; a signal fails the test with all that was written.
    #[track_caller]
    pub fn code(&self) -> i32 {
        match self.exit.termination {
            Termination::Exited(code) => code,
            Termination::Signaled(signal) => panic!("ended by signal {signal}: {self}"),
        }
    }

    /// Standard output as text without the final newline; fails the test unless the code is 0.
    #[track_caller]
    pub fn text(&self) -> String {
        assert_eq!(self.code(), 0, "{self}");
        String::from_utf8_lossy(&self.stdout).trim_end().to_owned()
    }
}

impl std::fmt::Display for Finished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tail = |bytes: &[u8]| String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(2000)..]).into_owned();
        write!(f, "{:?}\n--- stdout\n{}\n--- stderr\n{}", self.exit, tail(&self.stdout), tail(&self.stderr))
    }
}

/// Runs a process to its end. Its writer is slowed rather than its output cut.
pub async fn run_spec(guest: &dyn Guest, mut spec: ProcessSpec) -> Result<Finished, GuestError> {
    spec.spool = SpoolPolicy { overflow: Overflow::Slow, ..spec.spool };
    spec.deadline.get_or_insert(Duration::from_secs(600));
    let (_, stream) = guest.start_attached(&spec).await?;
    Finished::read(stream).await
}

/// Runs a command as the default user.
pub async fn run(guest: &dyn Guest, argv: &[&str]) -> Finished {
    run_spec(guest, ProcessSpec::new(argv)).await.unwrap_or_else(|error| panic!("run {argv:?}: {error} ({error:?})"))
}

/// Runs a shell script as the default user.
pub async fn sh(guest: &dyn Guest, script: &str) -> Finished {
    run(guest, &["/bin/bash", "-c", script]).await
}

/// A path inside.
pub fn path(text: impl AsRef<[u8]>) -> GuestPath {
    GuestPath::new(text.as_ref()).expect("a test's own path is well-formed")
}

/// Bytes that look random, repeat nowhere near, and are the same every time.
pub fn pattern(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut out = Vec::with_capacity(length + 8);
    while out.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
    out.truncate(length);
    out
}

/// SHA-256 in hexadecimal, as `sha256sum` prints it.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The most memory that a process ever held, in bytes.
pub fn most_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process is there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel says how big it was");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("in kilobytes") << 10
}
