//! Input for processes. The agent takes it by offset, so that nothing is taken twice; E2B's clients know no offsets, so writers to one process
//! take turns here.

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use belljar_core::Session;
use belljar_types::ProcessInfo;
use bytes::Bytes;

use super::daemon::{Message, Sandboxed};
use super::process::{Kept, find, find_again};
use crate::dto::{Input, OfProcess, Selector, SendInput, StreamInput};
use crate::errors::{Code, RpcError};
use crate::state::E2bState;
use crate::stream::{self as connect_stream, Incoming};

/// `SendInput`.
pub(super) async fn send(
    State(state): State<E2bState>,
    Sandboxed(inside): Sandboxed,
    Message(message): Message<SendInput>,
) -> Result<Response, RpcError> {
    write(&state, &inside.session, &message.process, message.input).await?;
    Ok(Json(serde_json::json!({})).into_response())
}

/// `StreamInput`: many pieces in one request, in order.
pub(super) async fn stream(State(state): State<E2bState>, Sandboxed(inside): Sandboxed, request: Request) -> Response {
    let session = inside.session.clone();
    let mut incoming = Incoming::new(request.into_body());
    let taken = async {
        let mut selector = None;
        while let Some(message) = incoming.next::<StreamInput>().await? {
            match (message.start, message.data, message.keepalive) {
                (Some(start), _, _) => selector = Some(start.process),
                (None, Some(data), _) => {
                    let selector = selector.as_ref().ok_or_else(|| RpcError::invalid("the first message must say which process"))?;
                    write(&state, &session, selector, data.input).await?;
                }
                (None, None, Some(_)) => {}
                (None, None, None) => return Err(RpcError::new(Code::Unimplemented, "invalid event type")),
            }
        }
        Ok(())
    };
    match taken.await {
        Ok(()) => connect_stream::single(&serde_json::json!({})),
        Err(error) => connect_stream::refused(error),
    }
}

async fn write(state: &E2bState, session: &Session, selector: &Selector, input: Input) -> Result<(), RpcError> {
    let over = state.turns.over();
    let mut info = find(session, selector, Kept::Not).await?;
    let place = state.turns.place((session.sandbox().id.clone(), info.id.clone()));
    let _mine = place.mine().await;
    if state.turns.over() != over {
        info = find_again(session, info).await?;
    }
    write_at_end(session, info, input).await
}

async fn write_at_end(session: &Session, info: ProcessInfo, input: Input) -> Result<(), RpcError> {
    let refuse = |what: &str, why: &str| Err(RpcError::new(Code::Internal, format!("error writing to {what}: {why}")));
    let (bytes, what) = match (input.stdin, input.pty) {
        (Some(_), _) if info.pty => {
            return refuse("stdin", "tty assigned to process — input should be written to the pty, not the stdin");
        }
        (None, Some(_)) if !info.pty => {
            return refuse("tty", "tty not assigned to process — input should be written to the stdin, not the tty");
        }
        (Some(bytes), _) => (bytes, "stdin"),
        (None, Some(bytes)) => (bytes, "tty"),
        (None, None) => return Err(RpcError::new(Code::Unimplemented, "invalid input type")),
    };
    match session.write_stdin(&info.id, info.stdin_offset, Bytes::from(bytes)).await {
        Ok(()) => Ok(()),
        Err(error) => match RpcError::of_guest(session, None, error).await {
            RpcError::Refused { message, .. } => refuse(what, &message),
            gone => Err(gone),
        },
    }
}

/// `CloseStdin`.
pub(super) async fn close(Sandboxed(inside): Sandboxed, Message(message): Message<OfProcess>) -> Result<Response, RpcError> {
    let info = find(&inside.session, &message.process, Kept::Not).await?;
    if info.pty {
        let why = "error closing stdin: cannot close stdin for PTY process — send Ctrl+D (0x04) instead";
        return Err(RpcError::new(Code::Internal, why));
    }
    match inside.session.close_stdin(&info.id).await {
        Ok(()) => Ok(Json(serde_json::json!({})).into_response()),
        Err(error) => Err(RpcError::of_guest(&inside.session, None, error).await),
    }
}
