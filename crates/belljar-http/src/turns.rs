//! Turns at a process's input. The agent takes input by offset, so that nothing is taken twice; clients of vendors know no offsets, so writers to one
//! process take turns.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use belljar_types::{ProcessId, SandboxId};

/// A process, whatever a client names it by.
pub type Whose = (SandboxId, ProcessId);

/// Who writes to which process; nobody, most of the time.
#[derive(Default)]
pub struct Turns {
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
pub struct Place<'a> {
    turns: &'a Turns,
    whose: Whose,
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// The turn itself. It is over before the next one begins.
pub struct Mine<'a> {
    turns: &'a Turns,
    _turn: tokio::sync::MutexGuard<'a, ()>,
}

impl Turns {
    /// A place at the end of the queue of a process.
    pub fn place(&self, whose: Whose) -> Place<'_> {
        let mut queues = self.lock();
        let queue = queues.entry(whose.clone()).or_default();
        queue.places += 1;
        let turn = Arc::clone(&queue.turn);
        Place { turns: self, whose, turn }
    }

    /// How many turns are over: what was seen of a process before one of them ended may be old.
    pub fn over(&self) -> u64 {
        self.over.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Whose, Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place<'_> {
    /// The turn, when it has come.
    pub async fn mine(&self) -> Mine<'_> {
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
