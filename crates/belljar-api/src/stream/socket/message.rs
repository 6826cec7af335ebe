//! The messages of a process's WebSocket: JSON to steer, binary for bytes.
//!
//! ```text
//!  binary:  1 byte: 0 standard input, 1 standard output, 2 standard error │ 8 bytes: offset, big-endian │ the bytes
//! ```
//!
//! The offset of standard input may be all ones: after everything before.

use axum::extract::ws::Message;
use belljar_http::Problem;
use belljar_types::{OutputEvent, StreamKind};
use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};

use crate::dto::{ExitView, ProcessView, PtyRequest, SignalRequest, StartRequest};
use crate::translate::stream_word;

const HEAD: usize = 9;

/// What a client may say.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum FromClient {
    Start(Box<StartRequest>),
    Resize(PtyRequest),
    Signal(SignalRequest),
    Eof,
}

impl FromClient {
    pub(super) fn read(text: &str) -> Result<Self, Problem> {
        serde_json::from_str(text).map_err(|error| Problem::invalid("message", format!("message: {error}")))
    }
}

/// What a client is told.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum ToClient {
    /// The process runs.
    Started { process: Box<ProcessView> },
    /// The process was there.
    Attached { process: Box<ProcessView> },
    /// Standard input was taken up to here.
    Stdin { offset: u64 },
    /// Output that is no longer kept.
    Gap { stream: &'static str, from: u64, to: u64 },
    /// It ended; nothing follows.
    Exit(ExitView),
    /// A message was not obeyed; all goes on.
    Refused { problem: serde_json::Value },
    /// It cannot go on; nothing follows.
    Error { problem: serde_json::Value },
}

impl ToClient {
    pub(super) fn refused(problem: &Problem) -> Self {
        Self::Refused { problem: serde_json::to_value(problem.body(None)).unwrap_or_default() }
    }

    pub(super) fn error(problem: &Problem) -> Self {
        Self::Error { problem: serde_json::to_value(problem.body(None)).unwrap_or_default() }
    }

    pub(super) fn message(&self) -> Message {
        Message::Text(serde_json::to_string(self).unwrap_or_default().into())
    }
}

/// Bytes for standard input.
pub(super) struct Stdin {
    pub(super) offset: Option<u64>,
    pub(super) bytes: Bytes,
}

impl Stdin {
    pub(super) fn read(mut message: Bytes) -> Result<Self, Problem> {
        let wrong = || Problem::invalid("message", "message: expected the byte 0, 8 bytes of offset, and bytes for standard input");
        if message.len() < HEAD || message.first() != Some(&0) {
            return Err(wrong());
        }
        let head = message.split_to(HEAD);
        let offset = head.get(1..HEAD).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes).ok_or_else(wrong)?;
        Ok(Self { offset: (offset != u64::MAX).then_some(offset), bytes: message })
    }
}

/// Output as a message.
pub(super) fn output(event: OutputEvent) -> Message {
    match event {
        OutputEvent::Data { stream, offset, bytes } => {
            let mut message = BytesMut::with_capacity(HEAD + bytes.len());
            message.put_u8(match stream {
                StreamKind::Stdout => 1,
                StreamKind::Stderr => 2,
            });
            message.put_u64(offset);
            message.put(bytes);
            Message::Binary(message.freeze())
        }
        OutputEvent::Gap { stream, from, to } => ToClient::Gap { stream: stream_word(stream), from, to }.message(),
        OutputEvent::Exit(exit) => ToClient::Exit(crate::translate::exit_view(exit)).message(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_has_a_channel_and_an_offset() {
        let read = Stdin::read(Bytes::from_static(b"\x00\x00\x00\x00\x00\x00\x00\x00\x05hi")).unwrap_or_else(|_| panic!("well-formed"));
        assert_eq!((read.offset, &read.bytes[..]), (Some(5), &b"hi"[..]));
        let read = Stdin::read(Bytes::from_static(b"\x00\xff\xff\xff\xff\xff\xff\xff\xffhi")).unwrap_or_else(|_| panic!("well-formed"));
        assert_eq!(read.offset, None);
        for wrong in [&b""[..], b"\x00", b"\x01\x00\x00\x00\x00\x00\x00\x00\x05hi"] {
            assert!(Stdin::read(Bytes::from_static(wrong)).is_err());
        }
    }

    #[test]
    fn a_misspelt_field_is_refused() {
        assert!(matches!(FromClient::read(r#"{"type":"resize","columns":80,"rows":24}"#), Ok(FromClient::Resize(_))));
        assert!(matches!(FromClient::read(r#"{"type":"start","command":"ls"}"#), Ok(FromClient::Start(_))));
        for wrong in [r#"{"type":"resize","columns":80}"#, r#"{"type":"start","comand":"ls"}"#, r#"{"type":"nope"}"#, "x", "{}"] {
            assert!(FromClient::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn output_carries_its_offset() {
        let event = OutputEvent::Data { stream: StreamKind::Stderr, offset: 258, bytes: Bytes::from_static(b"x") };
        assert_eq!(output(event), Message::Binary(Bytes::from_static(b"\x02\x00\x00\x00\x00\x00\x00\x01\x02x")));
    }
}
