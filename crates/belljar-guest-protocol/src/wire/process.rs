//! Bodies of the verbs about processes.

use std::collections::BTreeMap;
use std::time::Duration;

use belljar_types::{
    ExitStatus, GuestPath, Invalid, KillCause, Offsets, Overflow, ProcessInfo, ProcessSpec, PtySize, SpoolPolicy, StreamKind, Termination,
};
use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};

/// A process to start.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Start {
    /// Its id.
    #[n(0)]
    pub id: String,
    /// Program and arguments.
    #[n(1)]
    pub argv: Vec<ByteVec>,
    /// Environment.
    #[n(2)]
    pub env: BTreeMap<String, String>,
    /// Where it starts.
    #[n(3)]
    pub cwd: Option<ByteVec>,
    /// Who runs it.
    #[n(4)]
    pub user: Option<String>,
    /// Keep standard input open.
    #[n(5)]
    pub stdin: bool,
    /// Columns and rows.
    #[n(6)]
    pub pty: Option<(u16, u16)>,
    /// The caller's word.
    #[n(7)]
    pub tag: Option<String>,
    /// Milliseconds to live.
    #[n(8)]
    pub deadline_millis: Option<u64>,
    /// Bytes kept per stream.
    #[n(9)]
    pub spool_capacity: u32,
    /// 0 drop oldest, 1 slow, 2 kill.
    #[n(10)]
    pub overflow: u8,
    /// Answer with the process's output from byte 0 as well.
    #[n(11)]
    pub attach: bool,
}

impl Start {
    /// The body for a spec.
    pub fn new(spec: &ProcessSpec, attach: bool) -> Self {
        Self {
            id: spec.id.to_string(),
            argv: spec.argv.iter().cloned().map(ByteVec::from).collect(),
            env: spec.env.clone(),
            cwd: spec.cwd.as_ref().map(|cwd| cwd.as_bytes().to_vec().into()),
            user: spec.user.as_ref().map(ToString::to_string),
            stdin: spec.stdin,
            pty: spec.pty.map(|size| (size.columns, size.rows)),
            tag: spec.tag.clone(),
            deadline_millis: spec.deadline.map(|d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX).max(1)),
            spool_capacity: spec.spool.capacity,
            overflow: match spec.spool.overflow {
                Overflow::DropOldest => 0,
                Overflow::Slow => 1,
                Overflow::Kill => 2,
            },
            attach,
        }
    }
}

impl TryFrom<Start> for ProcessSpec {
    type Error = Invalid;
    fn try_from(body: Start) -> Result<Self, Invalid> {
        let spec = Self {
            id: body.id.parse()?,
            argv: body.argv.into_iter().map(Vec::from).collect(),
            env: body.env,
            cwd: body.cwd.map(|cwd| GuestPath::new(Vec::from(cwd))).transpose()?,
            user: body.user.map(|user| user.parse()).transpose()?,
            stdin: body.stdin,
            pty: body.pty.map(|(columns, rows)| PtySize { columns, rows }),
            tag: body.tag,
            deadline: body.deadline_millis.map(Duration::from_millis),
            spool: SpoolPolicy {
                capacity: body.spool_capacity,
                overflow: match body.overflow {
                    0 => Overflow::DropOldest,
                    1 => Overflow::Slow,
                    2 => Overflow::Kill,
                    other => return Err(Invalid::new("spool.overflow", "0, 1 or 2", other.to_string())),
                },
            },
        };
        spec.validate()?;
        Ok(spec)
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct ExitBody {
    /// Exit code, if it exited.
    #[n(0)]
    pub code: Option<i32>,
    /// Signal, if one ended it.
    #[n(1)]
    pub signal: Option<u8>,
    /// 1 deadline, 2 overflow, 3 out of memory.
    #[n(2)]
    pub cause: Option<u8>,
}

impl From<ExitStatus> for ExitBody {
    fn from(exit: ExitStatus) -> Self {
        let (code, signal) = match exit.termination {
            Termination::Exited(code) => (Some(code), None),
            Termination::Signaled(signal) => (None, Some(signal)),
        };
        let cause = exit.cause.map(|cause| match cause {
            KillCause::Deadline => 1,
            KillCause::Overflow => 2,
            KillCause::OutOfMemory => 3,
        });
        Self { code, signal, cause }
    }
}

impl TryFrom<ExitBody> for ExitStatus {
    type Error = Invalid;
    fn try_from(body: ExitBody) -> Result<Self, Invalid> {
        let termination = match (body.code, body.signal) {
            (Some(code), None) => Termination::Exited(code),
            (None, Some(signal @ 1..=64)) => Termination::Signaled(signal),
            other => return Err(Invalid::new("exit", "a code or a signal", format!("{other:?}"))),
        };
        let cause = match body.cause {
            None => None,
            Some(1) => Some(KillCause::Deadline),
            Some(2) => Some(KillCause::Overflow),
            Some(3) => Some(KillCause::OutOfMemory),
            Some(other) => return Err(Invalid::new("exit.cause", "1, 2 or 3", other.to_string())),
        };
        Ok(Self { termination, cause })
    }
}

/// A process as the agent knows it. Arguments beyond 32 KiB in all are left out.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ProcessBody {
    #[n(0)]
    id: String,
    #[n(1)]
    pid: u32,
    #[n(2)]
    argv: Vec<ByteVec>,
    #[n(3)]
    tag: Option<String>,
    #[n(4)]
    user: String,
    #[n(5)]
    pty: bool,
    #[n(6)]
    started_at_millis: u64,
    #[n(7)]
    exit: Option<ExitBody>,
    #[n(8)]
    stdout: u64,
    #[n(9)]
    stderr: u64,
    #[n(10)]
    stdin_offset: u64,
}

impl ProcessBody {
    /// Bytes of arguments that are told.
    pub const SHOWN_ARGUMENTS: usize = 32 << 10;
}

impl From<&ProcessInfo> for ProcessBody {
    fn from(info: &ProcessInfo) -> Self {
        let mut room = Self::SHOWN_ARGUMENTS;
        let mut argv = Vec::new();
        for arg in &info.argv {
            let shown = arg.len().min(room);
            argv.push(ByteVec::from(arg.iter().take(shown).copied().collect::<Vec<u8>>()));
            // With its terminating NUL, so that empty ones cannot be without number.
            room = room.saturating_sub(arg.len() + 1);
            if room == 0 {
                break;
            }
        }
        Self {
            id: info.id.to_string(),
            pid: info.pid,
            argv,
            tag: info.tag.clone(),
            user: info.user.to_string(),
            pty: info.pty,
            started_at_millis: info.started_at_millis,
            exit: info.exit.map(Into::into),
            stdout: info.written.stdout,
            stderr: info.written.stderr,
            stdin_offset: info.stdin_offset,
        }
    }
}

impl TryFrom<ProcessBody> for ProcessInfo {
    type Error = Invalid;
    fn try_from(body: ProcessBody) -> Result<Self, Invalid> {
        if let Some(arg) = body.argv.iter().find(|arg| arg.contains(&0)) {
            return Err(Invalid::new("argv", "no NUL byte", &arg[..]));
        }
        Ok(Self {
            id: body.id.parse()?,
            pid: body.pid,
            argv: body.argv.into_iter().map(Vec::from).collect(),
            tag: body.tag,
            user: body.user.parse()?,
            pty: body.pty,
            started_at_millis: body.started_at_millis,
            exit: body.exit.map(TryInto::try_into).transpose()?,
            written: Offsets { stdout: body.stdout, stderr: body.stderr },
            stdin_offset: body.stdin_offset,
        })
    }
}

/// Only a process's id: close standard input.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ProcessOnly {
    /// Which.
    #[n(0)]
    pub id: String,
}

/// Read output from these offsets.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Attach {
    /// Of which process.
    #[n(0)]
    pub id: String,
    /// First byte of standard output.
    #[n(1)]
    pub stdout: u64,
    /// First byte of standard error.
    #[n(2)]
    pub stderr: u64,
}

/// Wait for an end.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Wait {
    /// Of which process.
    #[n(0)]
    pub id: String,
    /// At most this long.
    #[n(1)]
    pub at_most_millis: u64,
}

/// What came of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Waited {
    /// The end, if it came.
    #[n(0)]
    pub exit: Option<ExitBody>,
}

/// Bytes for standard input follow as data frames.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct WriteStdin {
    /// Of which process.
    #[n(0)]
    pub id: String,
    /// Offset of the first byte.
    #[n(1)]
    pub offset: u64,
}

/// How much of standard input was taken in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Taken {
    /// Offset after the last byte.
    #[n(0)]
    pub offset: u64,
}

/// A signal for a process.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SignalProcess {
    /// Which process.
    #[n(0)]
    pub id: String,
    /// Which signal.
    #[n(1)]
    pub signal: u8,
}

/// A new size for a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Resize {
    /// Whose.
    #[n(0)]
    pub id: String,
    /// Characters in a row.
    #[n(1)]
    pub columns: u16,
    /// Rows.
    #[n(2)]
    pub rows: u16,
}

/// How far a reader of output has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Ack {
    /// In standard output.
    #[n(0)]
    pub stdout: u64,
    /// In standard error.
    #[n(1)]
    pub stderr: u64,
}

/// What stands between pieces of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Notice {
    /// Bytes that are no longer kept.
    #[n(0)]
    Gap {
        /// 0 standard output, 1 standard error.
        #[n(0)]
        stream: u8,
        /// First missing byte.
        #[n(1)]
        from: u64,
        /// First byte after.
        #[n(2)]
        to: u64,
    },
    /// The end.
    #[n(1)]
    Exit(#[n(0)] ExitBody),
}

/// What stands before the bytes in an output frame: the stream and the offset, 9 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputHeader {
    /// Which stream.
    pub stream: StreamKind,
    /// Offset of the first byte.
    pub offset: u64,
}

impl OutputHeader {
    /// Its length on the wire.
    pub const LENGTH: usize = 9;

    /// As bytes.
    pub fn to_bytes(self) -> [u8; Self::LENGTH] {
        let [a, b, c, d, e, f, g, h] = self.offset.to_le_bytes();
        [stream_number(self.stream), a, b, c, d, e, f, g, h]
    }

    /// From the front of a frame's body.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Invalid> {
        match bytes.first_chunk::<{ Self::LENGTH }>() {
            Some(&[stream, ref offset @ ..]) => Ok(Self { stream: stream_from_number(stream)?, offset: u64::from_le_bytes(*offset) }),
            None => Err(Invalid::new("output", "a stream and an offset", bytes)),
        }
    }
}

/// The number of a stream on the wire.
pub fn stream_number(stream: StreamKind) -> u8 {
    match stream {
        StreamKind::Stdout => 0,
        StreamKind::Stderr => 1,
    }
}

/// The stream with this number.
pub fn stream_from_number(number: u8) -> Result<StreamKind, Invalid> {
    match number {
        0 => Ok(StreamKind::Stdout),
        1 => Ok(StreamKind::Stderr),
        other => Err(Invalid::new("stream", "0 or 1", other.to_string())),
    }
}
