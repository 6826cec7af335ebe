//! What a session's command said so far, and what it says as it says it.
//!
//! Newer clients are told the two outputs apart; older ones take them apart themselves, by marks; the oldest know one output only. Which it is, is told
//! by the version that they send.

use axum::Json;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket};
use axum::extract::{Path, RawQuery, WebSocketUpgrade};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use belljar_core::{OutputStream, Session};
use belljar_types::{Offsets, OutputEvent, ProcessInfo, StreamKind};
use futures_util::{SinkExt, StreamExt};

use super::inside::Inside;
use super::sandboxes::Answer;
use super::session_commands::{READY, command};
use crate::dto::Logs;
use crate::stream::{Closing, Mixed, accept, close, marked};

/// From this version on clients are told the outputs apart.
const TOLD_APART: (u32, u32) = (0, 167);
/// From this one on they take them apart by marks.
const BY_MARKS: (u32, u32) = (0, 27);

/// How a client reads two outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    Apart,
    ByMarks,
    AsOne,
}

impl Reading {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let by_protocol = || text("sec-websocket-protocol")?.split(',').find_map(|word| word.trim().strip_prefix("X-Daytona-SDK-Version~"));
        let Some(version) = text("x-daytona-sdk-version").or_else(by_protocol) else {
            return if text("x-daytona-split-output") == Some("true") { Self::ByMarks } else { Self::AsOne };
        };
        let mut numbers = version.split('.').map(|part| part.parse().ok());
        match (numbers.next().flatten(), numbers.next().flatten()) {
            (Some(major), Some(minor)) if (major, minor) < BY_MARKS => Self::AsOne,
            (Some(major), Some(minor)) if (major, minor) < TOLD_APART => Self::ByMarks,
            // What is no number is being worked on, and newer than any that is.
            _ => Self::Apart,
        }
    }

    pub(super) fn is_marked(self) -> bool {
        self != Self::AsOne
    }

    pub(super) fn is_split(self) -> bool {
        self == Self::Apart
    }
}

/// `GET …/logs`: up to now, or over a WebSocket for as long as the command runs.
pub(super) async fn logs(
    inside: Inside,
    Path((_sandbox, session, id)): Path<(String, String, String)>,
    headers: HeaderMap,
    RawQuery(_follow): RawQuery,
    asked: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Answer<Response> {
    let reading = Reading::of(&headers);
    let relay = command(&inside, &session, &id).await?;
    let output = inside.session.attach(&relay.id, Offsets { stdout: READY, stderr: 0 }).await;
    let output = inside.done(output).await?;
    if asked.is_ok() {
        let (asked, _) = accept(asked, &headers)?;
        return Ok(asked.on_upgrade(move |socket| follow(socket, inside.session, output, reading)));
    }
    let said = so_far(&inside, &relay, output).await?;
    let output = if reading.is_marked() { said.marked() } else { said.text() };
    if !reading.is_split() {
        return Ok(output.into_response());
    }
    Ok(Json(Logs { output, stdout: said.only(StreamKind::Stdout), stderr: said.only(StreamKind::Stderr) }).into_response())
}

/// What was written when it was looked at; nothing is waited for.
async fn so_far(inside: &Inside, relay: &ProcessInfo, mut output: OutputStream) -> Answer<Mixed> {
    let mut said = Mixed::default();
    let (mut stdout, mut stderr) = (READY.min(relay.written.stdout), 0);
    while stdout < relay.written.stdout || stderr < relay.written.stderr {
        let Some(event) = output.next().await else { break };
        match inside.done(event).await? {
            OutputEvent::Data { stream, offset, bytes } => {
                let end = offset.saturating_add(bytes.len() as u64);
                *(if stream == StreamKind::Stdout { &mut stdout } else { &mut stderr }) = end;
                if !said.push(stream, &bytes) {
                    break;
                }
            }
            OutputEvent::Gap { stream, to, .. } => *(if stream == StreamKind::Stdout { &mut stdout } else { &mut stderr }) = to,
            OutputEvent::Exit(_) => break,
        }
    }
    Ok(said)
}

async fn follow(socket: WebSocket, session: Session, mut output: OutputStream, reading: Reading) {
    let (mut sink, mut stream) = socket.split();
    // Whoever only listens still says when they go, and answers to pings are sent while they are heard.
    let left = async { while let Some(Ok(_)) = stream.next().await {} };
    let told = async {
        loop {
            let message = match output.next().await {
                Some(Ok(OutputEvent::Data { stream, bytes, .. })) if reading.is_marked() => marked(stream, &bytes),
                Some(Ok(OutputEvent::Data { bytes, .. })) => bytes.to_vec(),
                Some(Ok(OutputEvent::Gap { .. })) => continue,
                Some(Ok(OutputEvent::Exit(_))) => return close(&mut sink, Closing::normal()).await,
                Some(Err(error)) => return close(&mut sink, Closing::because(1011, session.explain(error).await.to_string())).await,
                None => return close(&mut sink, Closing::because(1011, "the sandbox has ended")).await,
            };
            if sink.send(Message::Binary(message.into())).await.is_err() {
                return;
            }
        }
    };
    tokio::select! { () = told => {}, () = left => {} }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_client_reads_is_told_by_its_version() {
        for (version, expected) in [
            ("0.226.1", Reading::Apart),
            ("0.167.0", Reading::Apart),
            ("0.128.1", Reading::ByMarks),
            ("0.26.9", Reading::AsOne),
            ("dev", Reading::Apart),
        ] {
            let headers = HeaderMap::from_iter([("x-daytona-sdk-version".parse().unwrap(), version.parse().unwrap())]);
            assert_eq!(Reading::of(&headers), expected, "{version}");
        }
        assert_eq!(Reading::of(&HeaderMap::new()), Reading::AsOne);
        let offered = HeaderMap::from_iter([("sec-websocket-protocol".parse().unwrap(), "X-Daytona-SDK-Version~0.128.1".parse().unwrap())]);
        assert_eq!(Reading::of(&offered), Reading::ByMarks);
    }
}
