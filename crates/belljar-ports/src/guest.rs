//! [`Guest`]: what can be done inside a running sandbox, in plain verbs that no vendor invented.
//!
//! The other side is hostile. Whoever implements this bounds every size and wait, checks every answer, and turns whatever
//! breaks the rules into [`GuestError::Misbehaved`], after which that connection is gone.

use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use belljar_types::{
    ArtifactId, ByteRange, ExecutionId, ExitStatus, FileEvent, FileInfo, GuestMetrics, GuestPath, Invalid, KeepWish, ListOptions,
    ListeningPort, Offsets, OutputEvent, ProcessId, ProcessInfo, ProcessSpec, PtySize, SandboxId, SearchHit, SearchQuery, Signal, UserName,
    WishId, WriteOptions,
};
use bytes::Bytes;
use futures_core::Stream;

/// A file's bytes, in pieces, in order.
pub type ByteStream = Pin<Box<dyn Stream<Item = Result<Bytes, GuestError>> + Send>>;
/// A process's output; ends after [`OutputEvent::Exit`].
pub type OutputStream = Pin<Box<dyn Stream<Item = Result<OutputEvent, GuestError>> + Send>>;
/// File events, until dropped.
pub type EventStream = Pin<Box<dyn Stream<Item = Result<FileEvent, GuestError>> + Send>>;
/// Search hits, until there are no more.
pub type SearchStream = Pin<Box<dyn Stream<Item = Result<SearchHit, GuestError>> + Send>>;
/// What programs inside ask for, until somebody else listens.
pub type WishStream = Pin<Box<dyn Stream<Item = Result<KeepWish, GuestError>> + Send>>;

/// Who answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestInfo {
    /// The sandbox it says it is.
    pub sandbox: SandboxId,
    /// The run it says it is.
    pub execution: ExecutionId,
    /// The agent's version.
    pub agent_version: String,
    /// The protocol generation both sides speak.
    pub generation: u16,
}

/// A file being read.
pub struct FileContent {
    /// What it is, as of opening.
    pub info: FileInfo,
    /// Its bytes.
    pub bytes: ByteStream,
}

/// Why something inside the sandbox was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuestError {
    /// The request is wrong; nothing was changed.
    #[error("refused the request")]
    Invalid(#[from] Invalid),
    /// The sandbox's own kernel or files said no.
    #[error("{operation}: {message}")]
    Refused {
        /// What was being attempted inside.
        operation: &'static str,
        /// Linux error number, 0 if there is none.
        errno: i32,
        /// The reason, made safe to print.
        message: String,
    },
    /// No such process.
    #[error("no process {id} in this sandbox")]
    NoProcess {
        /// The id asked for.
        id: ProcessId,
    },
    /// The agent is older than this verb.
    #[error("the agent speaks generation {generation}, which has no {verb}")]
    TooOld {
        /// What both sides speak.
        generation: u16,
        /// What was asked.
        verb: &'static str,
    },
    /// The agent cannot be reached, or went silent.
    #[error("lost the agent while trying to {operation}")]
    Lost {
        /// What was being attempted.
        operation: &'static str,
        /// What the socket said.
        #[source]
        source: std::io::Error,
    },
    /// It would have had to be recorded first, and that was not possible. Nothing was done.
    #[error("it was not done, because it could not be recorded")]
    Unrecorded(#[source] crate::AuditError),
    /// The agent broke the protocol; its connection was closed.
    #[error("the agent broke the protocol while asked to {operation}: {detail}")]
    Misbehaved {
        /// What was being attempted.
        operation: &'static str,
        /// What it did, made safe to print.
        detail: String,
    },
}

/// The agent inside one sandbox.
#[async_trait]
pub trait Guest: Send + Sync {
    /// Asks who is there: one round trip.
    async fn hello(&self) -> Result<GuestInfo, GuestError>;

    /// Starts a process. The same id again answers with the process that is there, started once.
    async fn start(&self, spec: &ProcessSpec) -> Result<ProcessInfo, GuestError>;

    /// Starts a process and reads its output from byte 0, in one round trip.
    async fn start_attached(&self, spec: &ProcessSpec) -> Result<(ProcessInfo, OutputStream), GuestError>;

    /// All processes that were started through the agent and are still known.
    async fn processes(&self) -> Result<Vec<ProcessInfo>, GuestError>;

    /// Reads a process's output from these offsets. Any number may read at once.
    async fn attach(&self, id: &ProcessId, from: Offsets) -> Result<OutputStream, GuestError>;

    /// Waits for its end. `None` if it did not end in time.
    async fn wait(&self, id: &ProcessId, at_most: Duration) -> Result<Option<ExitStatus>, GuestError>;

    /// Writes to its standard input at a byte offset: what was taken before is not taken twice. Returns after all was taken.
    async fn write_stdin(&self, id: &ProcessId, offset: u64, bytes: Bytes) -> Result<(), GuestError>;

    /// Ends its standard input.
    async fn close_stdin(&self, id: &ProcessId) -> Result<(), GuestError>;

    /// Sends a signal to it and to what it started (its process group).
    async fn signal(&self, id: &ProcessId, signal: Signal) -> Result<(), GuestError>;

    /// Changes the size of its terminal.
    async fn resize(&self, id: &ProcessId, size: PtySize) -> Result<(), GuestError>;

    /// Reads a file or a piece of it.
    async fn read_file(&self, path: &GuestPath, range: ByteRange, user: Option<&UserName>) -> Result<FileContent, GuestError>;

    /// Writes a file in place from a stream, whatever its length.
    async fn write_file(&self, path: &GuestPath, options: &WriteOptions, content: ByteStream) -> Result<FileInfo, GuestError>;

    /// What a path is. Does not follow a link at its end.
    async fn stat(&self, path: &GuestPath, user: Option<&UserName>) -> Result<FileInfo, GuestError>;

    /// What a directory holds.
    async fn list(&self, path: &GuestPath, options: &ListOptions) -> Result<Vec<FileInfo>, GuestError>;

    /// Makes a directory and its parents. Says whether it was made (`false`: it was there).
    async fn make_directory(&self, path: &GuestPath, user: Option<&UserName>) -> Result<bool, GuestError>;

    /// Moves a file or directory, replacing a file that is there.
    async fn rename(&self, from: &GuestPath, to: &GuestPath, user: Option<&UserName>) -> Result<FileInfo, GuestError>;

    /// Removes a file, or a directory with all it holds.
    async fn remove(&self, path: &GuestPath, user: Option<&UserName>) -> Result<(), GuestError>;

    /// Changes permission bits.
    async fn set_mode(&self, path: &GuestPath, mode: u32, user: Option<&UserName>) -> Result<(), GuestError>;

    /// Changes owner and group.
    async fn set_owner(&self, path: &GuestPath, uid: Option<u32>, gid: Option<u32>, user: Option<&UserName>) -> Result<(), GuestError>;

    /// Reads an extended attribute; `None` if it is not there.
    async fn get_xattr(&self, path: &GuestPath, name: &str, user: Option<&UserName>) -> Result<Option<Bytes>, GuestError>;

    /// Sets an extended attribute, or removes it.
    async fn set_xattr(&self, path: &GuestPath, name: &str, value: Option<&[u8]>, user: Option<&UserName>) -> Result<(), GuestError>;

    /// Tells what happens in a directory, and below it if `recursive`. The watch is in place when this returns.
    async fn watch(&self, path: &GuestPath, recursive: bool, user: Option<&UserName>) -> Result<EventStream, GuestError>;

    /// Finds files by name and content.
    async fn search(&self, query: &SearchQuery) -> Result<SearchStream, GuestError>;

    /// Ports that programs inside listen on.
    async fn ports(&self) -> Result<Vec<ListeningPort>, GuestError>;

    /// Connects to a port inside, as a client on the sandbox's own loopback would.
    async fn connect(&self, port: u16) -> Result<GuestConnection, GuestError>;

    /// CPU, memory and disk as seen from inside.
    async fn metrics(&self) -> Result<GuestMetrics, GuestError>;

    /// What programs inside ask for: first what was not answered yet, then what comes. One listens at a time: the stream ends when another begins.
    async fn wishes(&self) -> Result<WishStream, GuestError>;

    /// Answers a wish, with what was kept or with the reason why nothing was. One that is not known any more is no error.
    async fn answer_wish(&self, id: WishId, answer: Result<&ArtifactId, &str>) -> Result<(), GuestError>;
}

/// What a program inside sends on a connection.
#[async_trait]
pub trait GuestReader: Send {
    /// The next bytes; `None` at their end. Dropping the future loses nothing.
    async fn read(&mut self) -> Result<Option<Bytes>, GuestError>;
}

/// What is sent to a program inside on a connection.
#[async_trait]
pub trait GuestWriter: Send {
    /// Sends bytes.
    async fn write(&mut self, bytes: Bytes) -> Result<(), GuestError>;

    /// Sends end of file; reading goes on.
    async fn finish(&mut self) -> Result<(), GuestError>;
}

/// A two-way byte stream to a program inside. Neither direction waits for the other; dropping one of them ends both.
pub struct GuestConnection {
    reader: Box<dyn GuestReader>,
    writer: Box<dyn GuestWriter>,
}

impl GuestConnection {
    /// The two directions of one connection.
    pub fn new(reader: impl GuestReader + 'static, writer: impl GuestWriter + 'static) -> Self {
        Self { reader: Box::new(reader), writer: Box::new(writer) }
    }

    /// The two directions, for whoever uses both at one time: a program may wait for either.
    pub fn split(self) -> (Box<dyn GuestReader>, Box<dyn GuestWriter>) {
        (self.reader, self.writer)
    }

    /// The next bytes; `None` at their end.
    pub async fn read(&mut self) -> Result<Option<Bytes>, GuestError> {
        self.reader.read().await
    }

    /// Sends bytes.
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), GuestError> {
        self.writer.write(bytes).await
    }

    /// Sends end of file; reading goes on.
    pub async fn finish(&mut self) -> Result<(), GuestError> {
        self.writer.finish().await
    }
}
