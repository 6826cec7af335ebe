//! Running something to its end and keeping what it said. All of it is one answer of a client's, so there is a bound to it.

use std::time::Duration;

use axum::http::StatusCode;
use belljar_core::{GuestError, OutputStream, Session};
use belljar_types::{ExitStatus, KillCause, OutputEvent, ProcessId, ProcessInfo, ProcessSpec, Signal};
use bytes::Bytes;
use futures_util::StreamExt;

use super::inside::Inside;
use super::sandboxes::Answer;
use crate::errors::{ApiError, is_no_such_file};
use crate::stream::{MOST_OUTPUT, Mixed};
use crate::translate::exit_code;

/// Input is written in pieces of this size.
const PIECE: usize = 256 << 10;
/// What runs commands, and what does where that is not there.
const SHELLS: [&str; 2] = ["/bin/bash", "/bin/sh"];

/// What a program came to.
pub(super) struct Ran {
    pub(super) said: Mixed,
    pub(super) exit: ExitStatus,
}

/// Why it is not known what a program came to.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotRun {
    /// It did not start, or its sandbox is gone.
    #[error(transparent)]
    Guest(#[from] GuestError),
    /// It said more than can be kept.
    #[error("it wrote more than {MOST_OUTPUT} bytes; write to a file and download that")]
    TooMuch,
    /// It wrote faster than was read.
    #[error("bytes {from} to {to} of what it wrote were not read in time and are gone; write to a file and download that")]
    Gap {
        /// The first byte that is gone.
        from: u64,
        /// The first that is not.
        to: u64,
    },
}

impl NotRun {
    pub(super) async fn told(self, inside: &Inside) -> ApiError {
        match self {
            Self::Guest(error) => crate::errors::of_guest(&inside.session, error).await,
            other => ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, other.to_string()).with_code("OUTPUT_TOO_LARGE"),
        }
    }
}

impl Ran {
    /// The code as a shell has it: ended by a signal, it is 128 and the signal's number.
    pub(super) fn code(&self) -> i32 {
        exit_code(&self.exit)
    }

    /// Refuses what ran out of time.
    pub(super) fn in_time(self) -> Answer<Self> {
        if self.exit.cause == Some(KillCause::Deadline) {
            let error = ApiError::new(StatusCode::REQUEST_TIMEOUT, "command execution timeout");
            return Err(error.with_code("PROCESS_EXECUTION_TIMEOUT"));
        }
        Ok(self)
    }
}

/// Seconds of a request; none, and 0, are for ever.
pub(super) fn deadline(seconds: Option<u64>) -> Option<Duration> {
    seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs)
}

/// Starts what a shell is to run, with the first shell that there is.
pub(super) async fn start_with_shell(
    session: &Session,
    spec: impl Fn(&str) -> ProcessSpec,
) -> Result<(ProcessInfo, OutputStream), GuestError> {
    let [first, second] = SHELLS;
    match session.start_attached(&spec(first)).await {
        Err(error) if is_no_such_file(&error) && !says_no_directory(&error) => session.start_attached(&spec(second)).await,
        started => started,
    }
}

/// Whether it was the directory that is not there, and not the program.
pub(super) fn says_no_directory(error: &GuestError) -> bool {
    matches!(error, GuestError::Refused { message, .. } if message.starts_with("could not enter the directory "))
}

/// Follows a program to its end while it is given its input.
pub(super) async fn finish(session: &Session, info: &ProcessInfo, output: OutputStream, input: Option<Bytes>) -> Result<Ran, NotRun> {
    let fed = async {
        if let Some(input) = input {
            feed(session, &info.id, input).await;
        }
    };
    let (ran, ()) = tokio::join!(collect(session, &info.id, output), fed);
    ran
}

/// Gives a program its whole input. One that does not want it ends early, and that is no error.
async fn feed(session: &Session, id: &ProcessId, mut input: Bytes) {
    let mut offset = 0;
    while !input.is_empty() {
        let piece = input.split_to(input.len().min(PIECE));
        let length = piece.len() as u64;
        if session.write_stdin(id, offset, piece).await.is_err() {
            return;
        }
        offset += length;
    }
    let _ = session.close_stdin(id).await;
}

async fn collect(session: &Session, id: &ProcessId, mut output: OutputStream) -> Result<Ran, NotRun> {
    let mut said = Mixed::default();
    while let Some(event) = output.next().await {
        match event? {
            OutputEvent::Data { stream, bytes, .. } if !said.push(stream, &bytes) => {
                // Nobody will hear it: it is not to go on for nothing.
                let _ = session.signal(id, Signal::KILL).await;
                return Err(NotRun::TooMuch);
            }
            OutputEvent::Data { .. } => {}
            OutputEvent::Gap { from, to, .. } => return Err(NotRun::Gap { from, to }),
            OutputEvent::Exit(exit) => return Ok(Ran { said, exit }),
        }
    }
    let cut = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
    Err(NotRun::Guest(GuestError::Lost { operation: "follow a process", source: cut }))
}
