//! Connect's streams: each message in a frame of one flag byte and a length, the last one saying how it went.
//!
//! A stream ends politely, with that last frame, or not at all: when its sandbox is killed the connection is cut, because that is what clients
//! take as the sign to look whether the sandbox is still there.

mod content;

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use belljar_core::Session;
use belljar_http::Hangup;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use http_body_util::BodyExt;

use crate::errors::RpcError;

pub(crate) use content::{Content, Replay, unpacked};

/// The type of a stream's body, both ways.
pub(crate) const CONTENT_TYPE: &str = "application/connect+json";
/// The most one message of a client may have.
pub(crate) const LARGEST_MESSAGE: usize = 32 << 20;

const LAST: u8 = 0b10;
const COMPRESSED: u8 = 0b01;
const HEAD: usize = 5;
/// How often an idle stream is heard of when the client does not say.
const KEEPALIVE: Duration = Duration::from_secs(90);

/// A message in its frame.
pub(crate) fn frame(message: &impl serde::Serialize) -> Bytes {
    framed(0, message)
}

fn framed(flags: u8, message: &impl serde::Serialize) -> Bytes {
    // Our own messages are made of text and numbers: they always are JSON.
    let json = serde_json::to_vec(message).unwrap_or_default();
    let mut bytes = BytesMut::with_capacity(HEAD + json.len());
    bytes.put_u8(flags);
    bytes.put_u32(u32::try_from(json.len()).unwrap_or(u32::MAX));
    bytes.put_slice(&json);
    bytes.freeze()
}

/// What a handler puts on a stream.
pub(crate) type Frames = BoxStream<'static, Result<Bytes, RpcError>>;

/// A stream that is over before it began.
pub(crate) fn refused(error: RpcError) -> Response {
    match error.end_of_stream() {
        Some(end) => respond(Body::from(framed(LAST, &end))),
        None => error.into_response(),
    }
}

/// A stream of one message.
pub(crate) fn single(message: &impl serde::Serialize) -> Response {
    respond(Body::from([frame(message), framed(LAST, &serde_json::json!({}))].concat()))
}

/// Sends frames until they end, with a sign of life when there is nothing to say, and cuts the line when the sandbox ends.
pub(crate) fn serve(session: Session, frames: Frames, headers: &HeaderMap, keepalive: Bytes, hangup: Option<Hangup>) -> Response {
    let interval = keepalive_interval(headers);
    let begin = Some((session, frames));
    let body = stream::unfold(begin, move |state| {
        let (keepalive, hangup) = (keepalive.clone(), hangup.clone());
        async move {
            let (session, mut frames) = state?;
            let next = tokio::select! {
                biased;
                _ended = session.ended() => Err(cut(hangup.as_ref())),
                next = frames.next() => match next {
                    Some(Ok(frame)) => Ok((frame, false)),
                    None => Ok((framed(LAST, &serde_json::json!({})), true)),
                    Some(Err(error)) => match error.end_of_stream() {
                        Some(end) => Ok((framed(LAST, &end), true)),
                        None => Err(cut(hangup.as_ref())),
                    },
                },
                () = tokio::time::sleep(interval) => Ok((keepalive, false)),
            };
            match next {
                Ok((frame, false)) => Some((Ok(frame), Some((session, frames)))),
                Ok((frame, true)) => Some((Ok(frame), None)),
                Err(error) => Some((Err(error), None)),
            }
        }
    });
    respond(Body::from_stream(body))
}

/// The end of a stream whose sandbox has ended.
pub(crate) fn cut(hangup: Option<&Hangup>) -> std::io::Error {
    if let Some(hangup) = hangup {
        hangup.reset();
    }
    std::io::Error::new(std::io::ErrorKind::ConnectionReset, "the sandbox has ended")
}

fn respond(body: Body) -> Response {
    (StatusCode::OK, [(header::CONTENT_TYPE, CONTENT_TYPE), (header::CACHE_CONTROL, "no-store")], body).into_response()
}

fn keepalive_interval(headers: &HeaderMap) -> Duration {
    let asked = headers.get("keepalive-ping-interval").and_then(|value| value.to_str().ok()?.parse().ok());
    asked.filter(|seconds| (1..=3600).contains(seconds)).map_or(KEEPALIVE, Duration::from_secs)
}

/// Takes a client's frames apart as they come.
pub(crate) struct Incoming {
    body: Body,
    buffer: BytesMut,
    ended: bool,
}

impl Incoming {
    pub(crate) fn new(body: Body) -> Self {
        Self { body, buffer: BytesMut::new(), ended: false }
    }

    /// The next message; nothing after the last.
    pub(crate) async fn next<T: serde::de::DeserializeOwned>(&mut self) -> Result<Option<T>, RpcError> {
        loop {
            if let Some(message) = self.take()? {
                let message = serde_json::from_slice(&message);
                return message.map(Some).map_err(|error| RpcError::invalid(format!("unmarshal message: {error}")));
            }
            if self.ended {
                let whole = self.buffer.is_empty();
                return if whole { Ok(None) } else { Err(RpcError::invalid("protocol error: incomplete envelope")) };
            }
            match self.body.frame().await {
                Some(Ok(frame)) => self.buffer.extend(frame.into_data()),
                Some(Err(_)) => return Err(RpcError::invalid("protocol error: the request was cut short")),
                None => self.ended = true,
            }
        }
    }

    fn take(&mut self) -> Result<Option<Bytes>, RpcError> {
        let (Some(flags), Some(length)) = (self.buffer.first().copied(), self.buffer.get(1..HEAD)) else { return Ok(None) };
        if flags & COMPRESSED != 0 {
            return Err(RpcError::invalid("protocol error: sent compressed message without compression support"));
        }
        let length = length.iter().fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte));
        if length > LARGEST_MESSAGE {
            return Err(RpcError::new(
                crate::errors::Code::ResourceExhausted,
                format!("message size {length} is larger than configured max {LARGEST_MESSAGE}"),
            ));
        }
        if self.buffer.len() < HEAD + length {
            return Ok(None);
        }
        self.buffer.advance(HEAD);
        let message = self.buffer.split_to(length).freeze();
        if flags & LAST != 0 {
            self.ended = true;
            self.buffer.clear();
            return Ok(None);
        }
        Ok(Some(message))
    }
}

#[cfg(test)]
#[path = "stream/tests.rs"]
mod tests;
