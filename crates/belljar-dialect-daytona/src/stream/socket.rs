//! WebSockets as Daytona's clients open them: one of the protocols they offer is always taken, or they would not go on, and how it ended is in the
//! last frame.

use axum::extract::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message};
use axum::http::{HeaderMap, StatusCode, header};
use futures_util::{Sink, SinkExt};

use crate::errors::ApiError;

/// The largest message of a client.
const LARGEST_MESSAGE: usize = 1 << 20;
/// What the last frame may say, by the protocol.
const LONGEST_REASON: usize = 123;

/// How a connection ends.
pub(crate) struct Closing {
    pub(crate) code: u16,
    pub(crate) reason: String,
}

impl Closing {
    pub(crate) fn normal() -> Self {
        Self { code: 1000, reason: String::new() }
    }

    pub(crate) fn because(code: u16, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into() }
    }
}

/// What the client offers.
fn offered(headers: &HeaderMap) -> Vec<String> {
    let all = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(',')).map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The connection, if the request is one for a WebSocket.
pub(crate) fn accept(
    asked: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    headers: &HeaderMap,
) -> Result<(WebSocketUpgrade, Vec<String>), ApiError> {
    let asked = asked.map_err(|_| ApiError::new(StatusCode::UPGRADE_REQUIRED, "this is a WebSocket"))?;
    let offered = offered(headers);
    let asked = asked.protocols(offered.clone()).max_message_size(LARGEST_MESSAGE).max_frame_size(LARGEST_MESSAGE);
    Ok((asked.write_buffer_size(0).max_write_buffer_size(4 << 20), offered))
}

/// Says how it ended.
pub(crate) async fn close(sink: &mut (impl Sink<Message, Error = axum::Error> + Unpin), closing: Closing) {
    let end = closing.reason.floor_char_boundary(LONGEST_REASON);
    let reason = closing.reason.get(..end).unwrap_or_default().to_owned();
    // The client may have gone first; either way it is over.
    let _ = sink.send(Message::Close(Some(CloseFrame { code: closing.code, reason: reason.into() }))).await;
    let _ = sink.flush().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_come_in_one_header_or_in_several() {
        let mut headers = HeaderMap::new();
        for value in ["X-Daytona-Pty-Envs~e30, X-Daytona-Pty-Exit-Control", "other"] {
            headers.append(header::SEC_WEBSOCKET_PROTOCOL, value.parse().unwrap());
        }
        assert_eq!(offered(&headers), ["X-Daytona-Pty-Envs~e30", "X-Daytona-Pty-Exit-Control", "other"]);
    }
}
