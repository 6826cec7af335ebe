//! The end of a sandbox whose time is up, the same for every engine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use belljar_linux::cgroup::Cgroup;

use crate::record::Record;

/// When this sandbox's time is up, if it has a limit. Time that it was paused does not count.
pub fn time_is_up(record: &Record) -> Option<SystemTime> {
    record.spec.limits.wall_time.map(|life| record.started_at + life.saturating_sub(record.ran_before))
}

/// Kills what is in `cgroup` at that moment, having noted in `asked_to_end` that the end was wanted. It holds no [`crate::Host`], so a
/// sandbox that still has time does not keep the data directory from being closed.
pub async fn end_at(moment: SystemTime, cgroup: Cgroup, asked_to_end: &AtomicBool) {
    tokio::time::sleep(moment.duration_since(SystemTime::now()).unwrap_or(Duration::ZERO)).await;
    asked_to_end.store(true, Ordering::Release);
    let id = cgroup.name().to_owned();
    match tokio::task::spawn_blocking(move || cgroup.kill()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(sandbox = id, %error, "the sandbox's time is up, but it could not be killed"),
        Err(error) => tracing::error!(sandbox = id, %error, "the sandbox's time is up, but killing it was broken off"),
    }
}
