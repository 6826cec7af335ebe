//! Why the engine did not do what it was asked, and how that is told through the port.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use belljar_host::HostError;
use belljar_linux::cgroup::CgroupError;
use belljar_ports::RuntimeError;
use belljar_types::{IsolationClass, MountPath, SandboxId, lacks_room};

use crate::runsc::{FIX, OLDEST};

/// The kernel's words for a full disk and for a limit that is reached, as Go writes them.
const NO_SPACE: [&str; 2] = ["no space left on device", "disk quota exceeded"];

/// What went wrong with `runsc` or around it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineError {
    #[error("found no runsc; {FIX}")]
    NoRunsc,
    #[error("run {runsc} to learn its version; {FIX}")]
    AskVersion {
        runsc: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{runsc} is not a runsc of known version, it says \"{said}\"; {FIX}")]
    UnknownVersion { runsc: PathBuf, said: String },
    #[error("{runsc} is of {date} and {OLDEST} or later is needed; {FIX}")]
    TooOld { runsc: PathBuf, date: u32 },
    #[error("the path {path} is too long for a socket; use a data directory with a shorter path")]
    LongPath { path: PathBuf },
    #[error("write {path}")]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("write the boot files below {upper}")]
    BootFiles {
        upper: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("open the layer {path}")]
    Layer {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("mount the root of the sandbox at {path}")]
    Root {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("start {runsc}")]
    Start {
        runsc: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{runsc} failed with {status}: {said}")]
    Failed { runsc: PathBuf, status: String, said: String },
    #[error("runsc, told to {verb}, failed with {status}: {said}")]
    Told { verb: &'static str, status: String, said: String },
    #[error("make a directory for the memory image at {path}")]
    Image {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the file {file} was removed inside and is still open there")]
    NamelessFile { file: String },
    #[error("runsc was not done within {limit:?}; it said: {said}")]
    Slow { limit: Duration, said: String },
    #[error("the agent did not answer within {limit:?}; runsc said: {said}")]
    Silent { limit: Duration, said: String },
    #[error("find the sentry of the sandbox by {path}")]
    Sentry {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("show a volume at {path}")]
    Volume {
        path: MountPath,
        #[source]
        source: io::Error,
    },
    #[error("the server is shutting down")]
    ShuttingDown,
    #[error("use the sandbox's cgroup")]
    Cgroup(#[from] CgroupError),
}

impl EngineError {
    /// Whether runsc refused to let go of a sandbox because it does not hold it.
    pub(crate) fn is_not_held(&self) -> bool {
        matches!(self, Self::Told { verb: "resume", said, .. } if said.contains("cannot resume container") || said.contains("in state running"))
    }

    /// Whether there was no room on the disk: runsc says so in words.
    fn is_for_space(&self) -> bool {
        match self {
            Self::Told { said, .. } | Self::Failed { said, .. } => NO_SPACE.iter().any(|words| said.contains(words)),
            Self::Write { source, .. }
            | Self::BootFiles { source, .. }
            | Self::Root { source, .. }
            | Self::Image { source, .. }
            | Self::Volume { source, .. } => lacks_room(source),
            _ => false,
        }
    }

    /// As an error of the port. A `runsc` that cannot be used rules the class out, whatever the sandbox.
    pub(crate) fn during(self, operation: &'static str, id: &SandboxId) -> RuntimeError {
        match self {
            Self::NoRunsc | Self::AskVersion { .. } | Self::UnknownVersion { .. } | Self::TooOld { .. } | Self::LongPath { .. } => {
                RuntimeError::Unavailable { class: IsolationClass::Gvisor, reason: self.to_string() }
            }
            Self::NamelessFile { .. } => RuntimeError::WrongState {
                id: id.clone(),
                state: format!("{self}, so its memory cannot be kept; close the file, or keep the files alone"),
            },
            Self::Volume { path, source } if belljar_host::is_in_the_way(&source) => belljar_host::no_mount_point(&path),
            other if other.is_for_space() => {
                tracing::warn!(sandbox = %id, operation, error = belljar_types::chain(&other), "there is no disk space left for this");
                belljar_host::no_disk_space()
            }
            other => RuntimeError::Host { operation, id: id.clone(), source: Box::new(other) },
        }
    }
}

/// The host's error as one of the port.
pub(crate) fn from_host(error: HostError, operation: &'static str, id: &SandboxId) -> RuntimeError {
    error.during(IsolationClass::Gvisor, operation, id)
}
