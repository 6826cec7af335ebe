//! A process's output on its way to standard output and standard error: raw, as over ssh, or as lines of JSON.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use belljar_client::Follower;
use belljar_types::{ExitStatus, OutputEvent, StreamKind, Termination};
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, Stderr, Stdout};

use super::Broken;
use crate::screen::{self, Silent};

/// How output is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// The bytes as they are, each stream to its own.
    Raw,
    /// One JSON document for each piece, all to standard output.
    Json,
}

/// Prints until the process ends.
pub(super) async fn print(mut follower: Follower, style: Style) -> Result<ExitStatus, Broken> {
    let mut streams = Streams { stdout: tokio::io::stdout(), stderr: tokio::io::stderr() };
    while let Some(event) = follower.next().await.map_err(Broken::Lost)? {
        let printed = match style {
            Style::Raw => streams.raw(&event).await,
            Style::Json => streams.json(&event).await,
        };
        printed.map_err(|source| Broken::Told(Silent { source }.into()))?;
        if let OutputEvent::Exit(status) = event {
            return Ok(status);
        }
    }
    // A follower gives the end before it gives nothing.
    Err(Broken::Told(crate::command_error::CommandError::Refused("the output ended without an end of the process".to_owned())))
}

/// Prints what there is of a process's output, for `logs`.
pub(crate) async fn print_event(event: &OutputEvent, style: Style) -> std::io::Result<()> {
    let mut streams = Streams { stdout: tokio::io::stdout(), stderr: tokio::io::stderr() };
    match style {
        Style::Raw => streams.raw(event).await,
        Style::Json => streams.json(event).await,
    }
}

struct Streams {
    stdout: Stdout,
    stderr: Stderr,
}

impl Streams {
    async fn raw(&mut self, event: &OutputEvent) -> std::io::Result<()> {
        match event {
            OutputEvent::Data { stream: StreamKind::Stdout, bytes, .. } => {
                self.stdout.write_all(bytes).await?;
                self.stdout.flush().await
            }
            OutputEvent::Data { stream: StreamKind::Stderr, bytes, .. } => {
                self.stderr.write_all(bytes).await?;
                self.stderr.flush().await
            }
            OutputEvent::Gap { stream, from, to } => {
                screen::remark(&format!("belljar: {} bytes of {} are no longer kept", to - from, word(*stream)));
                Ok(())
            }
            OutputEvent::Exit(_) => Ok(()),
        }
    }

    async fn json(&mut self, event: &OutputEvent) -> std::io::Result<()> {
        self.stdout.write_all(format!("{}\n", document(event)).as_bytes()).await?;
        self.stdout.flush().await
    }
}

/// The same words as the API's.
fn document(event: &OutputEvent) -> Value {
    match event {
        OutputEvent::Data { stream, offset, bytes } => match std::str::from_utf8(bytes) {
            Ok(text) => json!({ "type": "data", "stream": word(*stream), "offset": offset, "text": text }),
            Err(_) => json!({ "type": "data", "stream": word(*stream), "offset": offset, "base64": BASE64_STANDARD.encode(bytes) }),
        },
        OutputEvent::Gap { stream, from, to } => json!({ "type": "gap", "stream": word(*stream), "from": from, "to": to }),
        OutputEvent::Exit(status) => {
            let (code, signal) = match status.termination {
                Termination::Exited(code) => (Some(code), None),
                Termination::Signaled(signal) => (None, Some(signal)),
            };
            let cause = status.cause.map(|cause| match cause {
                belljar_types::KillCause::Deadline => "deadline",
                belljar_types::KillCause::Overflow => "overflow",
                belljar_types::KillCause::OutOfMemory => "out-of-memory",
            });
            json!({ "type": "exit", "exit_code": code, "signal": signal, "cause": cause })
        }
    }
}

fn word(stream: StreamKind) -> &'static str {
    match stream {
        StreamKind::Stdout => "stdout",
        StreamKind::Stderr => "stderr",
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn json_lines_have_the_words_of_the_api() {
        let data = |bytes: &'static [u8]| OutputEvent::Data { stream: StreamKind::Stdout, offset: 3, bytes: Bytes::from_static(bytes) };
        let exit = ExitStatus { termination: Termination::Signaled(9), cause: Some(belljar_types::KillCause::Deadline) };
        for (event, expected) in [
            (data(b"hi\n"), json!({"type": "data", "stream": "stdout", "offset": 3, "text": "hi\n"})),
            (data(b"\xff"), json!({"type": "data", "stream": "stdout", "offset": 3, "base64": "/w=="})),
            (
                OutputEvent::Gap { stream: StreamKind::Stderr, from: 1, to: 5 },
                json!({"type": "gap", "stream": "stderr", "from": 1, "to": 5}),
            ),
            (OutputEvent::Exit(exit), json!({"type": "exit", "exit_code": null, "signal": 9, "cause": "deadline"})),
        ] {
            assert_eq!(document(&event), expected);
        }
    }
}
