//! A terminal over a WebSocket: what it shows comes as bytes, what is typed goes as any message, and words about the connection are JSON.

use std::sync::Arc;

use axum::extract::ws::{Message, WebSocket};
use belljar_core::{OutputStream, Session};
use belljar_http::Turns;
use belljar_types::{ExitStatus, OutputEvent, ProcessId};
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;

use super::{Closing, close};
use crate::translate::exit_code;

/// How a terminal's end is told where it was no good one.
const NOT_WELL: u16 = 1011;

/// Goes on until the terminal or the client ends. `tells_end`: the client wants to hear how it ended in a message of its own.
pub(crate) async fn attached(socket: WebSocket, session: Session, turns: Arc<Turns>, id: ProcessId, output: OutputStream, tells_end: bool) {
    let (mut sink, stream) = socket.split();
    let connected = json!({ "type": "control", "status": "connected" });
    if sink.send(Message::Text(connected.to_string().into())).await.is_err() {
        return;
    }
    tokio::select! {
        () = down(&mut sink, &session, output, tells_end) => {}
        () = up(stream, &session, &turns, &id) => {}
    }
}

async fn down(sink: &mut SplitSink<WebSocket, Message>, session: &Session, mut output: OutputStream, tells_end: bool) {
    loop {
        let bytes = match output.next().await {
            Some(Ok(OutputEvent::Data { bytes, .. })) => bytes,
            Some(Ok(OutputEvent::Gap { .. })) => continue,
            Some(Ok(OutputEvent::Exit(exit))) => return end(sink, &exit, tells_end).await,
            Some(Err(error)) => return close(sink, Closing::because(NOT_WELL, session.explain(error).await.to_string())).await,
            None => return close(sink, Closing::because(NOT_WELL, "the sandbox has ended")).await,
        };
        if sink.send(Message::Binary(bytes)).await.is_err() {
            return;
        }
    }
}

async fn end(sink: &mut SplitSink<WebSocket, Message>, exit: &ExitStatus, tells_end: bool) {
    let said = how(exit);
    if tells_end {
        let mut control = said.clone();
        control.insert("type".to_owned(), "control".into());
        control.insert("status".to_owned(), "exited".into());
        let _ = sink.send(Message::Text(serde_json::Value::from(control).to_string().into())).await;
    }
    let code = if said.contains_key("exitReason") { NOT_WELL } else { 1000 };
    close(sink, Closing::because(code, serde_json::Value::from(said).to_string())).await;
}

/// The code, and why it is not 0 if it is not.
fn how(exit: &ExitStatus) -> serde_json::Map<String, serde_json::Value> {
    let code = exit_code(exit);
    let reason = match code {
        0 => None,
        130 => Some("Ctrl+C".to_owned()),
        137 => Some("SIGKILL".to_owned()),
        143 => Some("SIGTERM".to_owned()),
        129..=192 => Some(format!("signal {}", code - 128)),
        _ => Some("non-zero exit".to_owned()),
    };
    let mut said = serde_json::Map::from_iter([("exitCode".to_owned(), code.into())]);
    said.extend(reason.map(|reason| ("exitReason".to_owned(), reason.into())));
    said
}

/// What is typed, in turn with whoever else types there.
async fn up(mut stream: SplitStream<WebSocket>, session: &Session, turns: &Turns, id: &ProcessId) {
    let sandbox = session.sandbox().id.clone();
    while let Some(Ok(message)) = stream.next().await {
        let bytes: Bytes = match message {
            Message::Binary(bytes) => bytes,
            Message::Text(text) => text.into(),
            Message::Close(_) => return,
            Message::Ping(_) | Message::Pong(_) => continue,
        };
        let place = turns.place((sandbox.clone(), id.clone()));
        let _mine = place.mine().await;
        let Ok(known) = session.processes().await else { return };
        let Some(info) = known.into_iter().find(|info| info.id == *id && info.exit.is_none()) else { continue };
        if session.write_stdin(id, info.stdin_offset, bytes).await.is_err() {
            continue;
        }
    }
}

#[cfg(test)]
mod tests {
    use belljar_types::Termination;

    use super::*;

    #[test]
    fn an_end_is_told_with_its_reason() {
        let told = |termination| serde_json::Value::from(how(&ExitStatus { termination, cause: None })).to_string();
        assert_eq!(told(Termination::Exited(0)), r#"{"exitCode":0}"#);
        assert_eq!(told(Termination::Exited(3)), r#"{"exitCode":3,"exitReason":"non-zero exit"}"#);
        assert_eq!(told(Termination::Signaled(9)), r#"{"exitCode":137,"exitReason":"SIGKILL"}"#);
    }
}
