//! Letting a sandbox in which nothing happens cost next to nothing.
//!
//! A runsc that never rests (peculiarity (g)) wakes every millisecond for nothing, and a few dozen idle sandboxes keep two cores busy with that. The
//! kernel can put wake-ups together if it is told how late they may be. In use that would slow down what runs by a twentieth, so it is told
//! only when nobody has asked anything of the sandbox for a while and its processor time shows that it is not at work either:
//!
//! ```text
//!   precise ──▶ not used for a moment ──▶ and did next to nothing in another ──▶ at rest
//!      ▲                  used ◀──────────────────┘                                │
//!      └──────────────────────────────── used ◀───────────────────────────────────┘
//! ```

use std::collections::HashSet;
use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use belljar_linux::cgroup::Cgroup;
use rustix::io::Errno;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::errors::EngineError;
use crate::find::{is_member, sentry_pid};
use crate::launch::Files;
use crate::runtime::blocking;

/// How long nobody must have used it, and how long it must then have done nothing.
const MOMENT: Duration = Duration::from_secs(1);
/// More processor time than this in a moment is work: one that only wakes takes a third.
const WORK: Duration = Duration::from_millis(100);

/// How late the kernel may wake a sandbox, in nanoseconds.
#[derive(Clone, Copy)]
enum Slack {
    /// As the kernel has it for every process.
    Precise = 50_000,
    /// Saves three wake-ups of four; twice as much would save little more, and this is what programs inside notice: their sleeps are longer by it.
    AtRest = 4_000_000,
}

/// Looks after one sandbox's rest for as long as this is kept.
pub(crate) struct Rest {
    used: Arc<Notify>,
    task: AbortHandle,
}

impl Rest {
    pub(crate) fn new(files: Files, cgroup: Cgroup) -> Self {
        let used = Arc::new(Notify::new());
        let sentry = Sentry { files, cgroup };
        let noticed = Arc::clone(&used);
        let task = tokio::spawn(async move {
            if let Err(error) = rest_and_wake(&sentry, &noticed).await {
                // Its sentry is gone, or is about to be.
                tracing::debug!(group = %sentry.cgroup.path().display(), error = belljar_types::chain(&error), "a sandbox is left as awake as it is");
            }
        });
        Self { used, task: task.abort_handle() }
    }

    /// Somebody is about to ask something of it. Costs nothing: it is woken while it is asked.
    pub(crate) fn disturb(&self) {
        self.used.notify_one();
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn rest_and_wake(sentry: &Sentry, used: &Notify) -> Result<(), EngineError> {
    loop {
        until_quiet(sentry, used).await?;
        sentry.set(Slack::AtRest).await?;
        used.notified().await;
        sentry.set(Slack::Precise).await?;
    }
}

async fn until_quiet(sentry: &Sentry, used: &Notify) -> Result<(), EngineError> {
    loop {
        while timeout(MOMENT, used.notified()).await.is_ok() {}
        let before = sentry.processor_time().await?;
        if timeout(MOMENT, used.notified()).await.is_err() && sentry.processor_time().await?.saturating_sub(before) < WORK {
            return Ok(());
        }
    }
}

#[derive(Clone)]
struct Sentry {
    files: Files,
    cgroup: Cgroup,
}

impl Sentry {
    async fn processor_time(&self) -> Result<Duration, EngineError> {
        let cgroup = self.cgroup.clone();
        blocking(move || Ok(Duration::from_micros(cgroup.usage()?.cpu_micros))).await
    }

    async fn set(&self, slack: Slack) -> Result<(), EngineError> {
        let sentry = self.clone();
        blocking(move || sentry.set_now(slack).map_err(|source| EngineError::Sentry { path: sentry.files.pid.clone(), source })).await
    }

    /// For each of its threads. One that is started later has it from the one that starts it, and if that one did not have it yet, is found when all
    /// are looked at again.
    fn set_now(&self, slack: Slack) -> io::Result<()> {
        let pid = sentry_pid(&self.files)?;
        if !is_member(&self.cgroup, pid) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let nanoseconds = (slack as u32).to_string();
        let mut seen = HashSet::new();
        loop {
            let before = seen.len();
            for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
                let thread = thread?.file_name();
                let of_thread = format!("/proc/{}/timerslack_ns", thread.display());
                if seen.insert(thread) {
                    unless_ended(fs::write(of_thread, &nanoseconds))?;
                }
            }
            if seen.len() == before {
                return Ok(());
            }
        }
    }
}

/// A thread that has ended meanwhile needs nothing.
fn unless_ended(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(()),
        other => other,
    }
}
