//! Processes on the wire.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The size of a terminal.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PtyRequest {
    /// Characters in a row.
    #[schema(example = 80, minimum = 1)]
    pub(crate) columns: u16,
    /// Rows.
    #[schema(example = 24, minimum = 1)]
    pub(crate) rows: u16,
}

/// How much output is kept, and what happens beyond it.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SpoolRequest {
    /// Bytes kept per stream, 1024 to 16777216; 1 MiB when left out.
    #[schema(example = 1048576, minimum = 1024, maximum = 16777216)]
    pub(crate) capacity_bytes: Option<u32>,
    /// Beyond it: `drop-oldest` (default), `slow` (the process waits for readers) or `kill`.
    #[schema(example = "drop-oldest")]
    pub(crate) overflow: Option<String>,
}

/// A process to start. Give `argv`, or `command`.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"command": "echo hello"}))]
pub(crate) struct StartRequest {
    /// Its id; a fresh one when left out. The same id again answers with the process that is there, started once.
    pub(crate) id: Option<String>,
    /// Program and arguments; the program is looked up in `PATH`.
    pub(crate) argv: Option<Vec<String>>,
    /// A line for the shell, run as `/bin/sh -c`.
    pub(crate) command: Option<String>,
    /// Environment over the sandbox's and the user's.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// Where it starts; the template's directory, or the user's home, when left out.
    pub(crate) cwd: Option<String>,
    /// Who runs it; the template's user when left out.
    pub(crate) user: Option<String>,
    /// Keep standard input open for writing; otherwise it reads end of file at once.
    #[serde(default)]
    pub(crate) stdin: bool,
    /// Give it a terminal.
    pub(crate) pty: Option<PtyRequest>,
    /// A word of yours, to find it again.
    pub(crate) tag: Option<String>,
    /// Kill it, and what it started, after this many seconds.
    #[schema(example = 60.0)]
    pub(crate) deadline_seconds: Option<f64>,
    /// What happens to its output.
    #[serde(default)]
    pub(crate) spool: SpoolRequest,
}

/// How output is made fit to be read, by a person, a program or a model.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OutputRequest {
    /// What becomes of terminal escapes, control and hidden characters: `strip` (default), `show` (written so that they can be seen) or `keep`.
    #[schema(example = "strip")]
    pub(crate) escapes: Option<String>,
    /// Values that must not appear: each is replaced by `***`, also in hexadecimal and base64. At most 64, of 6 bytes or more.
    #[serde(default)]
    #[schema(example = json!(["a-secret-value"]))]
    pub(crate) mask: Vec<String>,
}

/// Where output came from. It is data, whatever it says.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Provenance)]
pub(crate) struct ProvenanceView {
    /// Always `untrusted`.
    #[schema(example = "untrusted")]
    pub(crate) trust: &'static str,
    /// The sandbox.
    pub(crate) sandbox: String,
    /// The process that wrote it.
    pub(crate) process: String,
}

/// What was done to a stream to make it fit to be read.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = Cleaning)]
pub(crate) struct CleaningView {
    /// Bytes that came.
    pub(crate) bytes: u64,
    /// Escapes and control characters taken out or shown.
    pub(crate) escapes: u64,
    /// How often a value was masked.
    pub(crate) masked: u64,
    /// How often something was not UTF-8 and was replaced.
    pub(crate) invalid: u64,
}

/// A command to run to its end.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"command": "echo hello"}))]
pub(crate) struct ExecRequest {
    /// Program and arguments; the program is looked up in `PATH`.
    pub(crate) argv: Option<Vec<String>>,
    /// A line for the shell, run as `/bin/sh -c`.
    pub(crate) command: Option<String>,
    /// Environment over the sandbox's and the user's.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// Where it starts.
    pub(crate) cwd: Option<String>,
    /// Who runs it.
    pub(crate) user: Option<String>,
    /// Text for its standard input.
    pub(crate) stdin: Option<String>,
    /// Bytes for its standard input, if they are not text.
    pub(crate) stdin_base64: Option<String>,
    /// Kill it after this many seconds.
    #[schema(example = 60.0)]
    pub(crate) timeout_seconds: Option<f64>,
    /// Make the output fit to be read: without terminal escapes, as UTF-8, with secrets masked. As it came when left out.
    pub(crate) output: Option<OutputRequest>,
    /// Bytes of each stream that are given back, 0 to 16777216; 1 MiB when left out. Of more, the first and the last half are kept.
    #[schema(example = 1048576, maximum = 16777216)]
    pub(crate) max_output_bytes: Option<u32>,
}

/// The end of a process: a code, or the signal that ended it.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = Exit)]
pub(crate) struct ExitView {
    /// The code it exited with.
    #[schema(required = true, example = 0)]
    pub(crate) exit_code: Option<i32>,
    /// The number of the signal that ended it.
    #[schema(required = true)]
    pub(crate) signal: Option<u8>,
    /// `deadline`, `overflow` or `out-of-memory`, if it was ended for that.
    #[schema(required = true)]
    pub(crate) cause: Option<&'static str>,
}

/// Bytes left out.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = Omitted)]
pub(crate) struct OmittedView {
    /// The first byte that is missing.
    pub(crate) from: u64,
    /// The first byte after those.
    pub(crate) to: u64,
}

/// A command that ended, and what it wrote.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExecResult {
    /// The process that ran it.
    #[schema(example = "pk3v9m2x8c7p4q6w5z2n")]
    pub(crate) process: String,
    /// The code it exited with.
    #[schema(required = true, example = 0)]
    pub(crate) exit_code: Option<i32>,
    /// The number of the signal that ended it.
    #[schema(required = true)]
    pub(crate) signal: Option<u8>,
    /// `deadline`, `overflow` or `out-of-memory`, if it was ended for that.
    #[schema(required = true)]
    pub(crate) cause: Option<&'static str>,
    /// Standard output, as its encoding says.
    #[schema(example = "hello\n")]
    pub(crate) stdout: String,
    /// Standard error, as its encoding says.
    #[schema(example = "")]
    pub(crate) stderr: String,
    /// `utf-8`, or `base64` if the bytes are not text.
    #[schema(example = "utf-8")]
    pub(crate) stdout_encoding: &'static str,
    /// `utf-8`, or `base64` if the bytes are not text.
    #[schema(example = "utf-8")]
    pub(crate) stderr_encoding: &'static str,
    /// Where all this came from.
    pub(crate) provenance: ProvenanceView,
    /// What was done to standard output, if `output` was asked for.
    #[schema(required = true)]
    pub(crate) stdout_cleaning: Option<CleaningView>,
    /// What was done to standard error, if `output` was asked for.
    #[schema(required = true)]
    pub(crate) stderr_cleaning: Option<CleaningView>,
    /// Which bytes of standard output were left out between its two halves.
    #[schema(required = true)]
    pub(crate) stdout_omitted: Option<OmittedView>,
    /// Which bytes of standard error were left out between its two halves.
    #[schema(required = true)]
    pub(crate) stderr_omitted: Option<OmittedView>,
    /// Whether anything was left out.
    #[schema(example = false)]
    pub(crate) truncated: bool,
}

/// Positions in the output, in bytes since the start.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = Offsets)]
pub(crate) struct OffsetsView {
    /// Of standard output; of a terminal, everything.
    pub(crate) stdout: u64,
    /// Of standard error.
    pub(crate) stderr: u64,
}

/// A process.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Process)]
pub(crate) struct ProcessView {
    /// Its id.
    #[schema(example = "pk3v9m2x8c7p4q6w5z2n")]
    pub(crate) id: String,
    /// Its number inside.
    pub(crate) pid: u32,
    /// Program and arguments; bytes that are not UTF-8 are replaced.
    #[schema(example = json!(["/bin/sh", "-c", "echo hello"]))]
    pub(crate) argv: Vec<String>,
    /// Your word for it.
    #[schema(required = true)]
    pub(crate) tag: Option<String>,
    /// Who runs it.
    #[schema(example = "user")]
    pub(crate) user: String,
    /// Whether it has a terminal.
    pub(crate) pty: bool,
    /// When it started, by the sandbox's clock.
    #[schema(example = "2026-11-15T06:00:00.000Z")]
    pub(crate) started_at: String,
    /// `running` or `ended`.
    #[schema(example = "running")]
    pub(crate) state: &'static str,
    /// How it ended.
    #[schema(required = true)]
    pub(crate) exit: Option<ExitView>,
    /// Bytes written so far.
    pub(crate) written: OffsetsView,
    /// Bytes of standard input taken so far.
    pub(crate) stdin_offset: u64,
}

/// The processes of a sandbox.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProcessList {
    /// Those started through the API that are still known.
    pub(crate) processes: Vec<ProcessView>,
}

/// Where to begin reading.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct OutputQuery {
    /// First byte of standard output; 0 when left out.
    #[param(example = 0)]
    pub(crate) stdout: Option<u64>,
    /// First byte of standard error; 0 when left out.
    #[param(example = 0)]
    pub(crate) stderr: Option<u64>,
}

/// How long to wait.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WaitQuery {
    /// 0 to 300 seconds; 60 when left out.
    #[param(example = 1.0, minimum = 0, maximum = 300)]
    pub(crate) timeout_seconds: Option<f64>,
}

/// Whether a process has ended.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WaitResult {
    /// Whether it has.
    pub(crate) ended: bool,
    /// How.
    #[schema(required = true)]
    pub(crate) exit: Option<ExitView>,
}

/// Where standard input goes on.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct StdinQuery {
    /// Offset of the body's first byte. What was taken before is not taken twice, so a write can be repeated. When left out: after all that was taken.
    #[param(example = 0)]
    pub(crate) offset: Option<u64>,
}

/// How much standard input was taken.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StdinResult {
    /// Bytes in all; the offset of the next one.
    pub(crate) stdin_offset: u64,
}

/// A signal by name or number.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum SignalWord {
    /// `TERM`, `SIGTERM`, `KILL`, `INT` …
    Name(String),
    /// 1 to 64.
    Number(i32),
}

/// A signal to send.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"signal": "TERM"}))]
pub(crate) struct SignalRequest {
    /// Which. It goes to the process and to what it started.
    pub(crate) signal: SignalWord,
}

/// One line of output, as NDJSON or as the data of a server-sent event.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
#[schema(example = json!({"type": "data", "stream": "stdout", "offset": 0, "text": "hello\n"}))]
pub(crate) enum OutputLine {
    /// First, if the same request started the process.
    Started {
        /// The process.
        process: Box<ProcessView>,
    },
    /// Bytes: `text` if they are UTF-8, else `base64`. A character is never cut in two.
    Data {
        /// `stdout` or `stderr`.
        stream: &'static str,
        /// Offset of the first byte.
        offset: u64,
        /// The bytes as text.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The bytes, if they are not text.
        #[serde(skip_serializing_if = "Option::is_none")]
        base64: Option<String>,
    },
    /// These bytes are no longer kept.
    Gap {
        /// `stdout` or `stderr`.
        stream: &'static str,
        /// The first byte that is missing.
        from: u64,
        /// The first byte after those.
        to: u64,
    },
    /// The process ended and all its output was given. The last line.
    Exit(ExitView),
    /// Nothing happened for 15 seconds; the connection lives.
    Heartbeat,
    /// The output cannot be read on. The last line.
    Error {
        /// Why.
        #[schema(value_type = crate::errors::ProblemSchema)]
        problem: serde_json::Value,
    },
}
