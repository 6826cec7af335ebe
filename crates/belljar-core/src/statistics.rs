//! Counters for operators: how many sandboxes were made, failed and ended, and why.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use belljar_types::{EndCause, IsolationClass, SandboxState};

/// What has happened since the server started, and what is there now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Live sandboxes by class and state.
    pub live: BTreeMap<(&'static str, &'static str), u64>,
    /// Sandboxes made.
    pub created: u64,
    /// Sandboxes that could not be made.
    pub not_made: u64,
    /// Sandboxes taken over from the server before.
    pub adopted: u64,
    /// Things on the host that nothing knew of, removed.
    pub orphans_removed: u64,
    /// Requests answered "busy".
    pub busy: u64,
    /// Sandboxes that ended, by cause.
    pub ended: BTreeMap<&'static str, u64>,
}

/// Where the counting is done.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) created: AtomicU64,
    pub(crate) not_made: AtomicU64,
    pub(crate) adopted: AtomicU64,
    pub(crate) orphans_removed: AtomicU64,
    pub(crate) busy: AtomicU64,
    ended: [AtomicU64; CAUSES.len()],
}

const CAUSES: [(EndCause, &str); 9] = [
    (EndCause::Requested, "requested"),
    (EndCause::LeaseExpired, "lease-expired"),
    (EndCause::Idle, "idle"),
    (EndCause::WallTime, "wall-time"),
    (EndCause::OutOfMemory, "out-of-memory"),
    (EndCause::Exited, "exited"),
    (EndCause::NotMade, "not-made"),
    (EndCause::Budget, "budget"),
    (EndCause::Lost, "lost"),
];

impl Counters {
    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn ended(&self, cause: EndCause) {
        if let Some(at) = CAUSES.iter().position(|(known, _)| *known == cause) {
            Self::count(&self.ended[at]);
        }
    }

    pub(crate) fn snapshot(&self, live: impl Iterator<Item = (IsolationClass, SandboxState)>) -> Statistics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut counted = BTreeMap::new();
        for (class, state) in live {
            *counted.entry((class.as_str(), state.as_str())).or_insert(0) += 1;
        }
        Statistics {
            live: counted,
            created: read(&self.created),
            not_made: read(&self.not_made),
            adopted: read(&self.adopted),
            orphans_removed: read(&self.orphans_removed),
            busy: read(&self.busy),
            ended: CAUSES.iter().zip(&self.ended).map(|((_, word), counter)| (*word, read(counter))).collect(),
        }
    }
}
