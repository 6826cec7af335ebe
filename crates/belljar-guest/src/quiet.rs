//! A moment in which nothing that programs do reaches the agent.
//!
//! gVisor (20240729) restores an epoll instance wrongly if anything was ready in it when its memory was written down: whatever else is registered there is
//! never heard of again, new connections included. So before a checkpoint the host asks for quiet: pipes and terminals are taken out of the
//! agent's epoll instance, and put back when the host connects again, or after a while by itself. Programs that write meanwhile fill their pipes.

use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::rc::{Rc, Weak};
use std::time::Duration;

use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;

/// Longer than any checkpoint takes to begin.
const LONGEST: Duration = Duration::from_secs(30);

/// A file's place in the epoll instance, if it has one now.
pub(crate) type Registration = Rc<RefCell<Option<Rc<AsyncFd<OwnedFd>>>>>;
type Known = Weak<RefCell<Option<Rc<AsyncFd<OwnedFd>>>>>;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
    static CHANGED: Rc<Notify> = Rc::new(Notify::new());
    static KNOWN: RefCell<Vec<Known>> = const { RefCell::new(Vec::new()) };
}

/// Takes note of what has to be taken out.
pub(crate) fn remember(registration: &Registration) {
    KNOWN.with_borrow_mut(|known| {
        if known.len() == known.capacity() {
            known.retain(|one| one.strong_count() > 0);
        }
        known.push(Rc::downgrade(registration));
    });
}

/// Takes everything out; returns when nobody uses it any more.
pub(crate) async fn begin() {
    QUIET.set(true);
    CHANGED.with(|changed| changed.notify_waiters());
    let known: Vec<Registration> = KNOWN.with_borrow(|known| known.iter().filter_map(Weak::upgrade).collect());
    for registration in &known {
        let held = registration.borrow_mut().take();
        // Whoever waits for it was just told, and gives it back at its next turn.
        while held.as_ref().is_some_and(|held| Rc::strong_count(held) > 1) {
            tokio::task::yield_now().await;
        }
    }
    tokio::task::spawn_local(async {
        tokio::time::sleep(LONGEST).await;
        end();
    });
}

/// Everything may be put back.
pub(crate) fn end() {
    if QUIET.replace(false) {
        CHANGED.with(|changed| changed.notify_waiters());
    }
}

/// Returns when there is no quiet.
pub(crate) async fn over() {
    until(|| !QUIET.get()).await;
}

/// Returns when there is.
pub(crate) async fn begun() {
    until(|| QUIET.get()).await;
}

async fn until(so: impl Fn() -> bool) {
    let changed = CHANGED.with(Rc::clone);
    while !so() {
        changed.notified().await;
    }
}
