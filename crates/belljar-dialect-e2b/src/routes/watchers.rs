//! Watchers that are asked instead of listened to: events wait here until they are fetched.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use belljar_types::{ProcessId, SandboxId};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::daemon::{As, Message, Sandboxed};
use super::watch::Watched;
use crate::dto::{CreateWatcher, Event, OfWatcher};
use crate::errors::{Code, RpcError};
use crate::state::E2bState;

const MOST_IN_A_SANDBOX: usize = 256;
const MOST_EVENTS: usize = 10_000;
/// What has just happened is on its way: events are given when no more have come for this long.
const QUIET: Duration = Duration::from_millis(25);
const LONGEST_WAIT: Duration = Duration::from_millis(250);

#[derive(Default)]
struct Queue {
    events: Mutex<(VecDeque<Event>, Option<RpcError>)>,
    came: Notify,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, (VecDeque<Event>, Option<RpcError>)> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, event: Result<Event, RpcError>) -> bool {
        let mut held = self.lock();
        match event {
            Ok(_) if held.0.len() >= MOST_EVENTS => {
                held.1 =
                    Some(RpcError::new(Code::ResourceExhausted, format!("more than {MOST_EVENTS} events were not fetched; watch anew")));
            }
            Ok(event) => held.0.push_back(event),
            Err(error) => held.1 = Some(error),
        }
        let goes_on = held.1.is_none();
        drop(held);
        self.came.notify_waiters();
        goes_on
    }
}

struct Watcher {
    sandbox: SandboxId,
    queue: Arc<Queue>,
    task: AbortHandle,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// All watchers of all sandboxes.
#[derive(Default)]
pub(crate) struct Watchers(Mutex<HashMap<String, Watcher>>);

impl Watchers {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Watcher>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends those of a sandbox.
    pub(crate) fn forget(&self, sandbox: &SandboxId) {
        self.lock().retain(|_, watcher| watcher.sandbox != *sandbox);
    }

    fn queue(&self, sandbox: &SandboxId, id: &str) -> Result<Arc<Queue>, RpcError> {
        let held = self.lock();
        let mine = held.get(id).filter(|watcher| watcher.sandbox == *sandbox);
        mine.map(|watcher| Arc::clone(&watcher.queue)).ok_or_else(|| unknown(id))
    }
}

fn unknown(id: &str) -> RpcError {
    RpcError::new(Code::NotFound, format!("watcher with id {} not found", belljar_types::escape_untrusted(id.as_bytes())))
}

/// `CreateWatcher`.
pub(super) async fn create(
    State(state): State<E2bState>,
    Sandboxed(inside): Sandboxed,
    As(user): As,
    Message(message): Message<CreateWatcher>,
) -> Result<Response, RpcError> {
    let sandbox = inside.session.sandbox().id.clone();
    if state.watchers.lock().values().filter(|watcher| watcher.sandbox == sandbox).count() >= MOST_IN_A_SANDBOX {
        return Err(RpcError::new(Code::ResourceExhausted, format!("a sandbox may have {MOST_IN_A_SANDBOX} watchers; remove some")));
    }
    let mut watched = Watched::begin(inside.session.clone(), user, &message).await?;
    let queue = Arc::new(Queue::default());
    let id = format!("w{}", ProcessId::random());
    let task = tokio::spawn({
        let (queue, state, id) = (Arc::clone(&queue), state.clone(), id.clone());
        async move {
            while let Some(event) = watched.next().await {
                // A sandbox that is gone has nobody who asks for its events.
                if matches!(event, Err(RpcError::Gone { .. })) {
                    state.watchers.lock().remove(&id);
                    return;
                }
                if !queue.put(event) {
                    return;
                }
            }
        }
    });
    state.watchers.lock().insert(id.clone(), Watcher { sandbox, queue, task: task.abort_handle() });
    Ok(Json(serde_json::json!({ "watcherId": id })).into_response())
}

/// `GetWatcherEvents`.
pub(super) async fn events(
    State(state): State<E2bState>,
    Sandboxed(inside): Sandboxed,
    Message(message): Message<OfWatcher>,
) -> Result<Response, RpcError> {
    let queue = state.watchers.queue(&inside.session.sandbox().id, &message.watcher_id)?;
    let quiet = async { while tokio::time::timeout(QUIET, queue.came.notified()).await.is_ok() {} };
    // Whatever has come by then is given.
    let _ = tokio::time::timeout(LONGEST_WAIT, quiet).await;
    let mut held = queue.lock();
    if let Some(RpcError::Refused { code, message }) = &held.1 {
        return Err(RpcError::new(*code, message.clone()));
    }
    let events: Vec<Event> = held.0.drain(..).collect();
    Ok(Json(serde_json::json!({ "events": events })).into_response())
}

/// `RemoveWatcher`.
pub(super) async fn remove(
    State(state): State<E2bState>,
    Sandboxed(inside): Sandboxed,
    Message(message): Message<OfWatcher>,
) -> Result<Response, RpcError> {
    state.watchers.queue(&inside.session.sandbox().id, &message.watcher_id)?;
    state.watchers.lock().remove(&message.watcher_id);
    Ok(Json(serde_json::json!({})).into_response())
}
