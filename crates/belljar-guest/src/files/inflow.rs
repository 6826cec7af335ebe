//! Content on its way into a file.
//!
//! ```text
//!  connection ── add ──▶ waiting ── all that is there, in one go ──▶ file
//!                                   └─ nothing left: the thread goes, and the next piece brings another
//! ```
//!
//! Whoever writes goes on for as long as there is something to write: a change of threads for every piece would cost more than the writing. A client that
//! is slow holds no thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use belljar_guest_protocol::Failure;
use belljar_types::FileInfo;
use bytes::Bytes;
use tokio::sync::Notify;

use super::Writing;
use crate::users::Users;

/// What may wait in memory until the file takes it.
const WAITING_AT_MOST: usize = 512 << 10;

/// A file that takes what comes.
pub(crate) struct Inflow {
    state: Mutex<State>,
    moved: Notify,
}

#[derive(Default)]
struct State {
    waiting: Vec<Bytes>,
    bytes: usize,
    /// Nothing comes after what waits.
    ended: bool,
    /// The file, while nobody writes.
    resting: Option<Open>,
    outcome: Option<Result<FileInfo, Failure>>,
}

struct Open {
    file: Writing,
    users: Arc<Users>,
}

impl Inflow {
    /// Opens a file on a thread that may block, and then writes what has come meanwhile.
    pub(crate) fn begin(open: impl FnOnce() -> Result<(Writing, Arc<Users>), Failure> + Send + 'static) -> Arc<Self> {
        let inflow = Arc::new(Self { state: Mutex::default(), moved: Notify::new() });
        let work = {
            let inflow = Arc::clone(&inflow);
            move || match open() {
                Ok((file, users)) => inflow.write(Open { file, users }),
                Err(failure) => inflow.settle(Err(failure)),
            }
        };
        start(work);
        inflow
    }

    /// Takes a piece. Whoever adds without waiting for [`Self::room`] fills the memory.
    pub(crate) fn add(self: &Arc<Self>, piece: Bytes) {
        let mut state = self.lock();
        state.bytes += piece.len();
        state.waiting.push(piece);
        self.wake(state);
    }

    /// Says that nothing comes any more.
    pub(crate) fn end(self: &Arc<Self>) {
        let mut state = self.lock();
        state.ended = true;
        self.wake(state);
    }

    /// Waits until there is room for a piece, or no more need of one.
    pub(crate) async fn room(&self) {
        while !self.look(|state| state.bytes < WAITING_AT_MOST || state.outcome.is_some()) {
            self.moved.notified().await;
        }
    }

    /// What became of the file: when it is closed, or when it could not be written.
    pub(crate) async fn outcome(&self) -> Result<FileInfo, Failure> {
        loop {
            if let Some(outcome) = self.look(|state| state.outcome.take()) {
                return outcome;
            }
            self.moved.notified().await;
        }
    }

    fn wake(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if let Some(open) = state.resting.take() {
            let inflow = Arc::clone(self);
            start(move || inflow.write(open));
        }
    }

    fn write(&self, mut open: Open) {
        loop {
            let mut state = self.lock();
            state.bytes = 0;
            let pieces = std::mem::take(&mut state.waiting);
            if pieces.is_empty() && !state.ended {
                state.resting = Some(open);
                return;
            }
            drop(state);
            self.moved.notify_one();
            if pieces.is_empty() {
                return self.settle(open.file.close(&open.users));
            }
            if let Err(failure) = open.file.append(&pieces) {
                return self.settle(Err(failure));
            }
        }
    }

    fn settle(&self, outcome: Result<FileInfo, Failure>) {
        self.lock().outcome = Some(outcome);
        self.moved.notify_one();
    }

    fn look<T>(&self, at: impl FnOnce(&mut State) -> T) -> T {
        at(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nobody waits for the thread itself: what it did is seen in the state.
fn start(work: impl FnOnce() + Send + 'static) {
    drop(crate::blocking::run(move || {
        work();
        Ok(())
    }));
}
