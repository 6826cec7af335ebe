//! Answers that go on: one JSON value a line (NDJSON), or the same as server-sent events. A client that reads slowly slows the source; nothing is
//! collected. When nothing happens for a while a heartbeat says that the connection lives.

mod output;
mod socket;
mod text;

pub(crate) use output::{OutputLines, Resume, how_it_ended};
pub(crate) use socket::Socket;
pub(crate) use text::{Piece, TextPieces};

use std::pin::Pin;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use futures_util::{FutureExt, Stream, StreamExt};
use serde::Serialize;

/// How long nothing may happen before a heartbeat.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(15);
/// Lines that are ready are sent together up to here.
const TOGETHER: usize = 64 << 10;

/// How lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Ndjson,
    Events,
}

impl Format {
    /// The stream a client asks for, if it asks for one.
    pub(crate) fn asked(headers: &HeaderMap) -> Option<Self> {
        let kinds = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
        kinds.filter_map(|kind| kind.split(';').next()).find_map(|kind| match kind.trim().to_ascii_lowercase().as_str() {
            "application/x-ndjson" => Some(Self::Ndjson),
            "text/event-stream" => Some(Self::Events),
            _ => None,
        })
    }

    fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Ndjson => "application/x-ndjson",
            Self::Events => "text/event-stream",
        })
    }

    fn write(self, line: &Line, out: &mut BytesMut) {
        if self == Self::Events {
            if let Some(id) = &line.id {
                out.extend_from_slice(format!("id: {id}\n").as_bytes());
            }
            out.extend_from_slice(b"data: ");
        }
        out.extend_from_slice(&line.json);
        out.extend_from_slice(if self == Self::Events { b"\n\n" } else { b"\n" });
    }
}

/// One line; as an event it may have an id, from which a client resumes.
pub(crate) struct Line {
    json: Vec<u8>,
    id: Option<String>,
}

impl Line {
    pub(crate) fn new(value: &impl Serialize) -> Self {
        // The bodies are plain data with text for keys, which is always JSON.
        Self { json: serde_json::to_vec(value).unwrap_or_default(), id: None }
    }

    pub(crate) fn with_id(self, id: String) -> Self {
        Self { id: Some(id), ..self }
    }
}

type Lines = Pin<Box<dyn Stream<Item = Line> + Send>>;

/// An answer of lines, with heartbeats where nothing happens.
pub(crate) fn answer(format: Format, heartbeat: &impl Serialize, lines: impl Stream<Item = Line> + Send + 'static) -> Response {
    let heartbeat = Line::new(heartbeat);
    let lines: Lines = Box::pin(lines);
    let body = futures_util::stream::unfold(Some((lines, heartbeat)), move |state| async move {
        let (mut lines, heartbeat) = state?;
        let mut out = BytesMut::new();
        match tokio::time::timeout(HEARTBEAT, lines.next()).await {
            Err(_) => format.write(&heartbeat, &mut out),
            Ok(None) => return None,
            Ok(Some(first)) => {
                format.write(&first, &mut out);
                while out.len() < TOGETHER {
                    match lines.next().now_or_never() {
                        Some(Some(line)) => format.write(&line, &mut out),
                        Some(None) => return Some((sent(out), None)),
                        None => break,
                    }
                }
            }
        }
        Some((sent(out), Some((lines, heartbeat))))
    });
    let headers = [
        (header::CONTENT_TYPE, format.content_type()),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        // Proxies that collect answers would hold lines back.
        (header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (StatusCode::OK, headers, Body::from_stream(body)).into_response()
}

fn sent(out: BytesMut) -> Result<Bytes, std::convert::Infallible> {
    Ok(out.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_stream_that_is_asked_for_is_given() {
        let asked = |accept: &'static str| Format::asked(&HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]));
        assert_eq!(asked("application/x-ndjson"), Some(Format::Ndjson));
        assert_eq!(asked("application/json, text/event-stream;q=0.9"), Some(Format::Events));
        assert_eq!(asked("*/*"), None);
    }

    #[test]
    fn an_event_carries_its_id() {
        let mut out = BytesMut::new();
        Format::Events.write(&Line::new(&serde_json::json!({"a": "b\nc"})).with_id("1,2".into()), &mut out);
        assert_eq!(out, "id: 1,2\ndata: {\"a\":\"b\\nc\"}\n\n");
    }
}
