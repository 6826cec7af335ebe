//! [`Tapes`]: what terminals showed, kept so that it can be shown again.
//!
//! A tape has what a program wrote to its terminal, when, and how large the terminal was; never what was typed, unless the program showed it.

use std::io;
use std::time::Duration;

use belljar_types::{ProcessId, ProjectId, PtySize, SandboxId, Timestamp};

/// Which terminal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TapeName {
    /// Whose.
    pub project: ProjectId,
    /// In which sandbox.
    pub sandbox: SandboxId,
    /// Of which process.
    pub process: ProcessId,
}

/// One that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TapeInfo {
    /// Of which process.
    pub process: ProcessId,
    /// When it began.
    pub began_at: Timestamp,
    /// Its size as it is kept.
    pub bytes: u64,
}

/// How long tapes are kept, and how much of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptTapes {
    /// Since they last grew.
    pub age: Duration,
    /// All of them together.
    pub bytes: u64,
}

/// The tapes of a host. What fails here fails for the tape, never for the terminal.
pub trait Tapes: Send + Sync {
    /// Begins a tape. `false` if there is one of this terminal already: a process that is started again is not recorded twice.
    fn begin(&self, name: &TapeName, size: PtySize, command: &str) -> io::Result<bool>;

    /// The terminal showed this.
    fn shown(&self, name: &TapeName, bytes: &[u8]) -> io::Result<()>;

    /// Its window has another size now.
    fn resized(&self, name: &TapeName, size: PtySize) -> io::Result<()>;

    /// Something happened to the tape or to the process, in words.
    fn marked(&self, name: &TapeName, what: &str) -> io::Result<()>;

    /// Nothing more comes.
    fn end(&self, name: &TapeName);

    /// The tapes of a sandbox, oldest first.
    fn list(&self, project: &ProjectId, sandbox: &SandboxId) -> io::Result<Vec<TapeInfo>>;

    /// Removes tapes that are too old, then the oldest until the rest is small enough; never one that is being recorded. Says how many.
    fn prune(&self, keep: KeptTapes) -> io::Result<usize>;

    /// A tape, as asciicast of version 2.
    fn read(&self, name: &TapeName) -> io::Result<Option<Vec<u8>>>;
}
