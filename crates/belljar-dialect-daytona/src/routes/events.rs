//! News of sandboxes as Daytona's clients listen for them: Socket.IO (protocol 5, over Engine.IO 4), WebSocket only. Clients that hear nothing ask, so
//! what is lost here is late and not wrong; but one that cannot connect at all tries for minutes, and its program does not end before.
//!
//! ```text
//!  ◄ 0{sid, …}   ► 40{"token": key}   ◄ 40{sid} or 44{message}   ◄ 42[event, data] …   ◄ 2 ► 3 every now and then
//! ```

use std::time::Duration;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket};
use axum::extract::{State, WebSocketUpgrade};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use belljar_core::{Change, Changes};
use belljar_types::ProcessId;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;

use super::sandboxes::Answer;
use crate::state::DaytonaState;
use crate::stream::{Closing, accept, close};
use crate::translate::{Links, sandbox_dto, state_of};

const PING_EVERY: Duration = Duration::from_secs(25);
/// How many pings may go unanswered.
const UNANSWERED: u32 = 2;
const FIRST_MESSAGE: Duration = Duration::from_secs(20);
/// What a client says for being let in.
const LARGEST_MESSAGE: usize = 16 << 10;

/// `GET /socket.io/`: the key comes in the first message.
pub(super) async fn connect(
    State(state): State<DaytonaState>,
    links: Links,
    headers: HeaderMap,
    asked: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Answer<Response> {
    let (asked, _) = accept(asked, &headers)?;
    Ok(asked.max_message_size(LARGEST_MESSAGE).on_upgrade(move |socket| tell(socket, state, links)))
}

async fn tell(socket: WebSocket, state: DaytonaState, links: Links) {
    let (mut sink, mut stream) = socket.split();
    let name = ProcessId::random().to_string();
    let open = json!({ "sid": name, "upgrades": [], "pingInterval": 25_000, "pingTimeout": 20_000, "maxPayload": LARGEST_MESSAGE });
    if !say(&mut sink, &format!("0{open}")).await {
        return;
    }
    let mut changes = match tokio::time::timeout(FIRST_MESSAGE, admitted(&state, &mut stream)).await {
        Ok(Some(changes)) => changes,
        _ => {
            say(&mut sink, &format!("44{}", json!({ "message": "Unauthorized" }))).await;
            return close(&mut sink, Closing::normal()).await;
        }
    };
    if !say(&mut sink, &format!("40{}", json!({ "sid": name }))).await {
        return;
    }
    let (mut pings, mut unanswered) = (tokio::time::interval(PING_EVERY), 0);
    pings.reset();
    loop {
        let words = tokio::select! {
            change = changes.next() => match change {
                Some(change) => event(&change, &links),
                None => return,
            },
            message = stream.next() => match message {
                Some(Ok(Message::Text(text))) if !text.starts_with('1') && !text.starts_with("41") => {
                    unanswered = 0;
                    continue;
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                _ => return,
            },
            _ = pings.tick() => {
                unanswered += 1;
                if unanswered > UNANSWERED {
                    return;
                }
                "2".to_owned()
            }
        };
        if !say(&mut sink, &words).await {
            return;
        }
    }
}

async fn say(sink: &mut SplitSink<WebSocket, Message>, words: &str) -> bool {
    sink.send(Message::Text(words.into())).await.is_ok()
}

/// What whoever connects may hear, by the key in the first message.
async fn admitted(state: &DaytonaState, stream: &mut SplitStream<WebSocket>) -> Option<Changes> {
    let Message::Text(text) = stream.next().await?.ok()? else { return None };
    let token = token_of(&text)?;
    let value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
    let who = state.gate.admit(&HeaderMap::from_iter([(header::AUTHORIZATION, value)])).await.ok()?;
    state.service.changes(&who).ok()
}

fn token_of(text: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Shown {
        token: String,
    }
    // A name of a room may stand before it; there is one.
    let shown = text.strip_prefix("40")?;
    serde_json::from_str::<Shown>(shown.strip_prefix("/,").unwrap_or(shown)).ok().map(|shown| shown.token)
}

fn event(change: &Change, links: &Links) -> String {
    let (sandbox, new) = (sandbox_dto(&change.sandbox, links), state_of(&change.sandbox));
    let told = match &change.before {
        None => json!(["sandbox.created", sandbox]),
        Some(before) => {
            let data = json!({ "id": change.sandbox.id.as_str(), "sandbox": sandbox, "oldState": state_of(before), "newState": new });
            json!(["sandbox.state.updated", data])
        }
    };
    format!("42{told}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_in_the_first_message() {
        assert_eq!(token_of(r#"40{"token":"bj_1"}"#).as_deref(), Some("bj_1"));
        assert_eq!(token_of(r#"40/,{"token":"bj_1"}"#).as_deref(), Some("bj_1"));
        for odd in ["", "40", "42[]", "40[]", r#"41{"token":"x"}"#] {
            assert_eq!(token_of(odd), None, "{odd}");
        }
    }
}
