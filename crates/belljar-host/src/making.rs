//! Sandboxes that are being made, so that nobody says one is gone while it is still on its way.
//!
//! A making goes on when nobody waits for it any more, and for a while there is no record of it yet. Whoever removes a sandbox tells its
//! making that it is not wanted, and waits until that has cleaned up after itself.
//!
//! ```text
//!   make ── task: work ─▶ whole ─▶ taken by whoever waits
//!                   │         └──▶ nobody waits any more: remove
//!                   └ failed, or called off: work has removed what there was
//! ```

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use belljar_ports::RuntimeError;
use belljar_types::{EndReason, SandboxId};
use tokio::sync::{oneshot, watch};

use crate::error::HostError;

const UNWANTED: &str = "it was removed while it was being made";

/// All that one engine of this process is making right now.
#[derive(Default)]
pub struct Makings(Mutex<HashMap<SandboxId, Arc<watch::Sender<bool>>>>);

/// One of them; over when this is dropped.
pub struct Making {
    id: SandboxId,
    all: Arc<Makings>,
    unwanted: watch::Receiver<bool>,
}

impl Makings {
    /// Has a sandbox made by `work`, which leaves nothing if it fails, in a task of its own: if the caller stops waiting, the sandbox is still
    /// finished and then removed with `remove`, not left half-made.
    pub async fn make<T, W, R>(
        self: &Arc<Self>,
        id: &SandboxId,
        work: impl FnOnce(Arc<Making>) -> W,
        remove: impl FnOnce() -> R + Send + 'static,
    ) -> Result<T, RuntimeError>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, RuntimeError>> + Send + 'static,
        R: Future<Output = Result<(), RuntimeError>> + Send + 'static,
    {
        let making = Arc::new(self.begin(id).ok_or_else(|| RuntimeError::Exists { id: id.clone() })?);
        let (answer, made) = oneshot::channel();
        let (work, task_id) = (work(Arc::clone(&making)), id.clone());
        tokio::spawn(async move {
            let result = work.await;
            // What failed can be tried again as soon as it is known; what nobody took has to go first.
            let making = result.is_ok().then_some(making);
            // An answer that is on its way when its receiver goes is dropped, and with it the sign that it was taken.
            let (take, taken) = oneshot::channel();
            drop(answer.send((result, take)));
            if making.is_some()
                && taken.await.is_err()
                && let Err(error) = remove().await
            {
                tracing::error!(sandbox = %task_id, %error, "a sandbox that nobody waited for could not be removed");
            }
            drop(making);
        });
        match made.await {
            Ok((result, take)) => {
                // Nobody asks about a failure.
                let _ = take.send(());
                result
            }
            Err(_) => Err(RuntimeError::Host { operation: "make the sandbox", id: id.clone(), source: Box::new(HostError::Closed) }),
        }
    }

    /// Has something done with a sandbox that is there, in a task of its own, after whatever else is being done with it: it is finished whether
    /// or not the caller waits for it, and whoever removes the sandbox waits until it is over.
    pub async fn alone<T, W>(self: &Arc<Self>, id: &SandboxId, work: impl FnOnce(Arc<Making>) -> W) -> Result<T, RuntimeError>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, RuntimeError>> + Send + 'static,
    {
        let making = Arc::new(self.begin_in_turn(id).await);
        let work = work(Arc::clone(&making));
        let done = tokio::spawn(async move {
            let result = work.await;
            drop(making);
            result
        });
        let stopped = |_| RuntimeError::Host { operation: "finish", id: id.clone(), source: Box::new(HostError::Closed) };
        done.await.map_err(stopped)?
    }

    /// Begins one as soon as there is no other of that name.
    async fn begin_in_turn(self: &Arc<Self>, id: &SandboxId) -> Making {
        loop {
            if let Some(begun) = self.begin(id) {
                return begun;
            }
            let other = self.known().get(id).cloned();
            if let Some(other) = other {
                other.closed().await;
            }
        }
    }

    /// Begins one, unless there is one of that name.
    fn begin(self: &Arc<Self>, id: &SandboxId) -> Option<Making> {
        let mut known = self.known();
        if known.contains_key(id) {
            return None;
        }
        let (tell, unwanted) = watch::channel(false);
        known.insert(id.clone(), Arc::new(tell));
        Some(Making { id: id.clone(), all: Arc::clone(self), unwanted })
    }

    /// Whether it is on its way, and so no remains of a crash: it will be whole or gone.
    pub fn is_making(&self, id: &SandboxId) -> bool {
        self.known().contains_key(id)
    }

    /// Says that it is not wanted any more, and waits until it is over.
    pub async fn call_off(&self, id: &SandboxId) {
        let making = self.known().get(id).cloned();
        if let Some(making) = making {
            making.send_replace(true);
            making.closed().await;
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<SandboxId, Arc<watch::Sender<bool>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Making {
    /// Whether nobody wants it any more.
    pub fn is_called_off(&self) -> bool {
        *self.unwanted.borrow()
    }

    /// Returns as soon as nobody wants it any more.
    pub async fn called_off(&self) {
        let mut unwanted = self.unwanted.clone();
        if unwanted.wait_for(|unwanted| *unwanted).await.is_err() {
            // Its entry cannot go before it does.
            std::future::pending::<()>().await;
        }
    }

    /// What whoever waits for a making that was called off is told.
    pub fn unwanted(&self) -> RuntimeError {
        RuntimeError::Ended { id: self.id.clone(), reason: EndReason::Killed, detail: UNWANTED.to_owned() }
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        self.all.known().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::SystemTime;

    use belljar_types::{Execution, ExecutionId, IsolationClass};

    use super::*;

    fn execution(id: &SandboxId) -> Execution {
        Execution { sandbox: id.clone(), id: ExecutionId::random(), class: IsolationClass::Gvisor, started_at: SystemTime::now() }
    }

    /// The moment that no timing of a test would hit: the answer is there, and whoever waited goes without having looked.
    #[tokio::test]
    async fn an_answer_that_was_sent_and_not_taken_is_removed() {
        let (makings, id, removed) = (Arc::new(Makings::default()), SandboxId::random(), Arc::new(AtomicBool::new(false)));
        let (go, told) = oneshot::channel::<()>();
        let (made, note) = (execution(&id), Arc::clone(&removed));
        let work = |_making| async move {
            let _ = told.await;
            Ok(made)
        };
        let remove = move || async move {
            note.store(true, Ordering::Release);
            Ok(())
        };
        let mut waiting = Box::pin(makings.make(&id, work, remove));
        assert!(is_waiting(waiting.as_mut()).await, "it was not begun");
        go.send(()).unwrap();
        // On one thread the task runs to its answer before this one goes on.
        tokio::task::yield_now().await;
        drop(waiting);
        makings.call_off(&id).await;
        assert!(removed.load(Ordering::Acquire));
        assert!(!makings.is_making(&id));
    }

    #[tokio::test]
    async fn what_is_taken_stays_and_one_name_is_made_once_at_a_time() {
        let (makings, id) = (Arc::new(Makings::default()), SandboxId::random());
        let (inner, made) = (Arc::clone(&makings), execution(&id));
        let again = id.clone();
        let work = |_making| async move {
            let second =
                inner.make(&again, |_| async { unreachable!("it was begun twice") as Result<Execution, _> }, || async { Ok(()) }).await;
            assert!(matches!(second, Err(RuntimeError::Exists { .. })), "{second:?}");
            Ok(made)
        };
        let result = makings.make(&id, work, || async { unreachable!("it was taken") }).await;
        assert_eq!(result.unwrap().sandbox, id);
        makings.call_off(&id).await;
        assert!(!makings.is_making(&id));
    }

    /// Polls once; says whether it is still waiting.
    async fn is_waiting<T>(mut future: std::pin::Pin<&mut impl Future<Output = T>>) -> bool {
        std::future::poll_fn(|context| std::task::Poll::Ready(future.as_mut().poll(context).is_pending())).await
    }
}
