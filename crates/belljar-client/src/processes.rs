//! Processes: start, read, feed, signal, wait.

use std::collections::BTreeMap;
use std::pin::Pin;

use belljar_types::{ExitStatus, KillCause, Offsets, OutputEvent, ProcessId, PtySize, SandboxId, Signal, Termination};
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::client::Client;
use crate::error::ClientError;
use crate::output::OutputLine;

/// A process's output as it comes; `None` is a sign of life without any.
pub type OutputStream = Pin<Box<dyn Stream<Item = Result<Option<OutputEvent>, ClientError>> + Send>>;

const LINES: &str = "application/x-ndjson";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct PtyRequest {
    columns: u16,
    rows: u16,
}

impl From<PtySize> for PtyRequest {
    fn from(PtySize { columns, rows }: PtySize) -> Self {
        Self { columns, rows }
    }
}

fn as_pty<S: serde::Serializer>(size: &Option<PtySize>, serializer: S) -> Result<S::Ok, S::Error> {
    size.map(PtyRequest::from).serialize(serializer)
}

/// What happens to a process's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SpoolRequest {
    /// Bytes kept per stream.
    pub capacity_bytes: u32,
    /// `drop-oldest`, `slow` or `kill`.
    pub overflow: &'static str,
}

/// A process to start.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StartProcess {
    /// Its id: the same again answers with the process that is there, started once.
    pub id: ProcessId,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Environment over the sandbox's.
    pub env: BTreeMap<String, String>,
    /// Where it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Who runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Keep standard input open.
    pub stdin: bool,
    /// Give it a terminal.
    #[serde(serialize_with = "as_pty", skip_serializing_if = "Option::is_none")]
    pub pty: Option<PtySize>,
    /// Kill it after this many seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_seconds: Option<f64>,
    /// What happens to its output; the server's default when unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spool: Option<SpoolRequest>,
}

impl StartProcess {
    /// A process with defaults for everything but its command.
    pub fn new(argv: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            id: ProcessId::random(),
            argv: argv.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            cwd: None,
            user: None,
            stdin: false,
            pty: None,
            deadline_seconds: None,
            spool: None,
        }
    }
}

/// The end of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// The code it exited with.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<u8>,
    /// `deadline`, `overflow` or `out-of-memory`, if it was ended for that.
    pub cause: Option<String>,
}

impl Exit {
    /// The same in Belljar's words; `None` if it says neither code nor signal.
    pub fn status(&self) -> Option<ExitStatus> {
        let termination = match (self.exit_code, self.signal) {
            (Some(code), _) => Termination::Exited(code),
            (None, Some(signal)) => Termination::Signaled(signal),
            (None, None) => return None,
        };
        let cause = match self.cause.as_deref() {
            Some("deadline") => Some(KillCause::Deadline),
            Some("overflow") => Some(KillCause::Overflow),
            Some("out-of-memory") => Some(KillCause::OutOfMemory),
            _ => None,
        };
        Some(ExitStatus { termination, cause })
    }
}

/// How much a process wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// To standard output, or to its terminal.
    pub stdout: u64,
    /// To standard error.
    pub stderr: u64,
}

/// A process as the server tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its id.
    pub id: ProcessId,
    /// Its number inside.
    pub pid: u32,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// The caller's word for it.
    pub tag: Option<String>,
    /// Who runs it.
    pub user: String,
    /// Whether it has a terminal.
    pub pty: bool,
    /// When it started, RFC 3339, by the sandbox's clock.
    pub started_at: String,
    /// `running` or `ended`.
    pub state: String,
    /// How it ended.
    pub exit: Option<Exit>,
    /// Bytes written so far.
    pub written: Written,
    /// Bytes of standard input taken so far.
    pub stdin_offset: u64,
}

#[derive(Deserialize)]
struct ProcessList {
    processes: Vec<Process>,
}

#[derive(Serialize)]
struct BeginAt {
    stdout: u64,
    stderr: u64,
}

impl Client {
    /// Starts a process; the same id again is the same process.
    pub async fn start_process(&self, sandbox: &SandboxId, process: &StartProcess) -> Result<Process, ClientError> {
        self.ask(Method::POST, ["v1", "sandboxes", sandbox.as_str(), "processes"]).json(process).fetch().await
    }

    /// Starts a process and reads its output from byte 0, in one round trip.
    pub async fn start_attached(&self, sandbox: &SandboxId, process: &StartProcess) -> Result<OutputStream, ClientError> {
        let asking = self.ask(Method::POST, ["v1", "sandboxes", sandbox.as_str(), "processes"]).json(process);
        Ok(self.events(asking.accept(LINES).send().await?))
    }

    /// All processes that were started through the API and are still known.
    pub async fn processes(&self, sandbox: &SandboxId) -> Result<Vec<Process>, ClientError> {
        let list: ProcessList = self.ask(Method::GET, ["v1", "sandboxes", sandbox.as_str(), "processes"]).fetch().await?;
        Ok(list.processes)
    }

    /// One process.
    pub async fn process(&self, sandbox: &SandboxId, process: &ProcessId) -> Result<Process, ClientError> {
        self.ask(Method::GET, process_path(sandbox, process, None)).fetch().await
    }

    /// A process's output from these offsets on, once. [`crate::Follower`] reads it through lost connections too.
    pub async fn output(&self, sandbox: &SandboxId, process: &ProcessId, from: Offsets) -> Result<OutputStream, ClientError> {
        let asking = self.ask(Method::GET, process_path(sandbox, process, Some("output")));
        let query = BeginAt { stdout: from.stdout, stderr: from.stderr };
        Ok(self.events(asking.query(&query).accept(LINES).send().await?))
    }

    fn events(&self, answer: crate::request::Answer) -> OutputStream {
        let url = self.url().to_owned();
        Box::pin(answer.lines::<OutputLine>().map(move |line| match line? {
            Some(line) => line.event(&url),
            None => Ok(None),
        }))
    }

    /// Writes to a process's standard input at an offset; returns when all was taken.
    pub async fn write_stdin(&self, sandbox: &SandboxId, process: &ProcessId, offset: u64, bytes: Bytes) -> Result<(), ClientError> {
        let asking = self.ask(Method::POST, process_path(sandbox, process, Some("stdin")));
        asking.query(&[("offset", offset)]).bytes(bytes).done().await
    }

    /// Ends a process's standard input.
    pub async fn close_stdin(&self, sandbox: &SandboxId, process: &ProcessId) -> Result<(), ClientError> {
        self.ask(Method::DELETE, process_path(sandbox, process, Some("stdin"))).done().await
    }

    /// Sends a signal to a process and what it started.
    pub async fn signal(&self, sandbox: &SandboxId, process: &ProcessId, signal: Signal) -> Result<(), ClientError> {
        let body = json!({ "signal": signal.number() });
        self.ask(Method::POST, process_path(sandbox, process, Some("signal"))).json(&body).done().await
    }

    /// Changes the size of a process's terminal.
    pub async fn resize(&self, sandbox: &SandboxId, process: &ProcessId, size: PtySize) -> Result<(), ClientError> {
        self.ask(Method::POST, process_path(sandbox, process, Some("resize"))).json(&PtyRequest::from(size)).done().await
    }
}

fn process_path<'a>(sandbox: &'a SandboxId, process: &'a ProcessId, verb: Option<&'a str>) -> impl Iterator<Item = &'a str> {
    ["v1", "sandboxes", sandbox.as_str(), "processes", process.as_str()].into_iter().chain(verb)
}
