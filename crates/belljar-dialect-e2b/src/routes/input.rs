//! Input for processes. The agent takes it by offset, so that nothing is taken twice; E2B's clients know no offsets, so writers to one process
//! take turns here.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use belljar_core::Session;
use belljar_types::{ProcessId, ProcessInfo, SandboxId};
use bytes::Bytes;

use super::daemon::{Message, Sandboxed};
use super::process::{Kept, find, find_again};
use crate::dto::{Input, OfProcess, Selector, SendInput, StreamInput};
use crate::errors::{Code, RpcError};
use crate::state::E2bState;
use crate::stream::{self as connect_stream, Incoming};

/// A process, whatever a client names it by.
type Whose = (SandboxId, ProcessId);

/// Who writes to which process; nobody, most of the time.
#[derive(Default)]
pub(crate) struct Turns {
    queues: Mutex<HashMap<Whose, Queue>>,
    /// Turns that are over: what was seen of a process before one of them ended may be old.
    over: AtomicU64,
}

#[derive(Default)]
struct Queue {
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Who writes and who waits to.
    places: usize,
}

/// A place in the queue of a process, given up when dropped: a client that hangs up takes its handler away wherever that is.
struct Place<'a> {
    turns: &'a Turns,
    whose: Whose,
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// The turn itself. It is over before the next one begins.
struct Mine<'a> {
    turns: &'a Turns,
    _turn: tokio::sync::MutexGuard<'a, ()>,
}

impl Turns {
    fn place(&self, whose: Whose) -> Place<'_> {
        let mut queues = self.lock();
        let queue = queues.entry(whose.clone()).or_default();
        queue.places += 1;
        let turn = Arc::clone(&queue.turn);
        Place { turns: self, whose, turn }
    }

    fn over(&self) -> u64 {
        self.over.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Whose, Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place<'_> {
    async fn mine(&self) -> Mine<'_> {
        Mine { turns: self.turns, _turn: self.turn.lock().await }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut queues = self.turns.lock();
        if let Entry::Occupied(mut queue) = queues.entry(self.whose.clone()) {
            queue.get_mut().places -= 1;
            if queue.get().places == 0 {
                queue.remove();
            }
        }
    }
}

impl Drop for Mine<'_> {
    fn drop(&mut self) {
        self.turns.over.fetch_add(1, Ordering::Release);
    }
}

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

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn writers_take_turns_and_those_that_left_are_forgotten() {
        let turns = Turns::default();
        let one: Whose = (SandboxId::random(), ProcessId::random());
        let other: Whose = (one.0.clone(), ProcessId::random());
        let first = turns.place(one.clone());
        let before = turns.over();
        let mine = first.mine().await;
        let second = turns.place(one.clone());
        assert!(second.mine().now_or_never().is_none(), "its turn comes when the first is over");
        assert!(turns.place(other).mine().now_or_never().is_some(), "another process has a queue of its own");
        let seen = turns.over();
        drop(mine);
        let mine = second.mine().now_or_never().expect("it is the second's turn");
        assert!(turns.over() > seen && seen > before, "what was seen before is old");
        drop(first);
        assert!(turns.place(one).mine().now_or_never().is_none(), "a third waits for the second, although the first has left");
        drop(mine);
        drop(second);
        assert!(turns.lock().is_empty());
    }

    #[tokio::test]
    async fn a_handler_that_is_dropped_leaves_nothing() {
        let turns = Arc::new(Turns::default());
        let whose: Whose = (SandboxId::random(), ProcessId::random());
        let write = || {
            let (turns, whose) = (Arc::clone(&turns), whose.clone());
            tokio::spawn(async move {
                let place = turns.place(whose);
                let _mine = place.mine().await;
                std::future::pending::<()>().await;
            })
        };
        let (writes, waits) = (write(), write());
        tokio::task::yield_now().await;
        assert_eq!(turns.lock().get(&whose).map(|queue| queue.places), Some(2));
        for handler in [waits, writes] {
            handler.abort();
            assert!(handler.await.is_err_and(|error| error.is_cancelled()));
        }
        assert!(turns.lock().is_empty());
    }
}
