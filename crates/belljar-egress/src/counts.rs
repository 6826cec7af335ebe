//! How much went through, counted before it is handed on, so that a limit is kept and not found out about.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use belljar_types::Traffic;

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the sandbox.
    Out,
    /// To the sandbox.
    In,
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    sent: AtomicU64,
    received: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) live: AtomicU32,
}

impl Counts {
    pub(crate) fn traffic(&self) -> Traffic {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Traffic {
            sent: read(&self.sent),
            received: read(&self.received),
            connections: read(&self.connections),
            refused: read(&self.refused),
        }
    }

    /// Counts bytes; `false`, and nothing counted, if that would pass the limit.
    pub(crate) fn add(&self, direction: Direction, bytes: u64, limit: Option<u64>) -> bool {
        let count = match direction {
            Direction::Out => &self.sent,
            Direction::In => &self.received,
        };
        let most = limit.unwrap_or(u64::MAX);
        count.try_update(Ordering::Relaxed, Ordering::Relaxed, |now| now.checked_add(bytes).filter(|sum| *sum <= most)).is_ok()
    }

    /// Takes back what was counted and did not go.
    pub(crate) fn take_back(&self, direction: Direction, bytes: u64) {
        let count = match direction {
            Direction::Out => &self.sent,
            Direction::In => &self.received,
        };
        count.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn spent(&self, sent: Option<u64>, received: Option<u64>) -> bool {
        let over = |count: &AtomicU64, limit: Option<u64>| limit.is_some_and(|most| count.load(Ordering::Relaxed) >= most);
        over(&self.sent, sent) || over(&self.received, received)
    }
}
