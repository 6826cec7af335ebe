//! Whether a sandbox is in use: what its idle time-out goes by.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Counts who uses a sandbox now, and remembers when the last one left.
#[derive(Debug)]
pub(crate) struct Activity {
    started: Instant,
    in_use: AtomicUsize,
    left_at_millis: AtomicU64,
}

impl Activity {
    /// Counts from now.
    pub(crate) fn new() -> Self {
        Self { started: Instant::now(), in_use: AtomicUsize::new(0), left_at_millis: AtomicU64::new(0) }
    }

    pub(crate) fn enter(&self) {
        self.in_use.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn leave(&self) {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.left_at_millis.fetch_max(now, Ordering::AcqRel);
        self.in_use.fetch_sub(1, Ordering::AcqRel);
    }

    /// Counts idle time from now on.
    pub(crate) fn touch(&self) {
        self.enter();
        self.leave();
    }

    /// When it will have been idle for `timeout`, if nobody comes; later than now while somebody is there.
    pub(crate) fn idle_at(&self, timeout: Duration) -> Instant {
        if self.in_use.load(Ordering::Acquire) > 0 {
            return Instant::now() + timeout;
        }
        self.started + Duration::from_millis(self.left_at_millis.load(Ordering::Acquire)) + timeout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_sandbox_in_use_is_never_idle_and_time_counts_from_when_the_last_one_left() {
        let timeout = Duration::from_secs(10);
        let activity = Activity::new();
        activity.enter();
        activity.enter();
        tokio::time::advance(Duration::from_secs(100)).await;
        activity.leave();
        assert!(activity.idle_at(timeout) > Instant::now());
        activity.leave();
        tokio::time::advance(Duration::from_secs(9)).await;
        assert!(activity.idle_at(timeout) > Instant::now());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(activity.idle_at(timeout) <= Instant::now());
    }
}
