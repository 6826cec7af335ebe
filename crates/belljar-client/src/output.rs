//! A process's output as lines of JSON, and what they mean.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use belljar_types::{ExitStatus, OutputEvent, StreamKind};
use bytes::Bytes;
use serde::Deserialize;

use crate::error::{ClientError, ProblemBody};
use crate::processes::Exit;

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StreamName {
    Stdout,
    Stderr,
}

impl From<StreamName> for StreamKind {
    fn from(name: StreamName) -> Self {
        match name {
            StreamName::Stdout => Self::Stdout,
            StreamName::Stderr => Self::Stderr,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum OutputLine {
    Started {},
    Data { stream: StreamName, offset: u64, text: Option<String>, base64: Option<String> },
    Gap { stream: StreamName, from: u64, to: u64 },
    Exit(Exit),
    Heartbeat,
    Error { problem: Box<ProblemBody> },
}

impl OutputLine {
    /// What the line tells of the output; `None` if nothing.
    pub(crate) fn event(self, url: &str) -> Result<Option<OutputEvent>, ClientError> {
        let nonsense = |detail: &str| ClientError::Answer { url: url.to_owned(), detail: detail.to_owned() };
        Ok(match self {
            Self::Started {} | Self::Heartbeat => None,
            Self::Data { stream, offset, text: Some(text), .. } => {
                Some(OutputEvent::Data { stream: stream.into(), offset, bytes: Bytes::from(text) })
            }
            Self::Data { stream, offset, text: None, base64 } => {
                let bytes = BASE64_STANDARD.decode(base64.unwrap_or_default()).map_err(|_| nonsense("output that is not base64"))?;
                Some(OutputEvent::Data { stream: stream.into(), offset, bytes: Bytes::from(bytes) })
            }
            Self::Gap { stream, from, to } => Some(OutputEvent::Gap { stream: stream.into(), from, to }),
            Self::Exit(exit) => {
                let status: Option<ExitStatus> = exit.status();
                Some(OutputEvent::Exit(status.ok_or_else(|| nonsense("an end with neither code nor signal"))?))
            }
            Self::Error { problem } => return Err(ClientError::Refused(problem)),
        })
    }
}
