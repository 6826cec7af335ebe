//! Who runs, how to talk to it, and how it ended.
//!
//! Each sandbox that this process knows has one task that waits for its first process to end, takes its ending (a child that nobody
//! waits for stays a zombie), and says why. The same task ends a sandbox whose time is up.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use belljar_guest_client::OomLedger;
use belljar_host::{Agent, Cgroup, Host, Record, end_at, time_is_up};
use belljar_linux::pidfd::{self, Ending};
use belljar_ports::Guest;
use belljar_types::{EndReason, Execution, IsolationClass, Signal, Termination};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

/// A sandbox that this process knows.
pub(crate) struct Live {
    pub(crate) execution: Execution,
    pub(crate) guest: Arc<dyn Guest>,
    ended: watch::Receiver<Option<EndReason>>,
    asked_to_end: Arc<AtomicBool>,
}

impl Live {
    /// Begins to look after a sandbox whose first process this is.
    pub(crate) fn watch(host: &Arc<Host>, record: &Record, first: OwnedFd) -> io::Result<Self> {
        let Agent { guest, ledger, .. } = host.agent(record, |end| end == Termination::Signaled(Signal::KILL.number()), None);
        let asked_to_end = Arc::new(AtomicBool::new(false));
        let (tell, ended) = watch::channel(None);
        let watcher = Watcher {
            first: readable(first)?,
            cgroup: host.cgroup(&record.id),
            ledger,
            asked_to_end: Arc::clone(&asked_to_end),
            time_is_up: time_is_up(record),
        };
        tokio::spawn(async move { tell.send_replace(Some(watcher.run().await)) });
        Ok(Self { execution: execution(record), guest, ended, asked_to_end })
    }

    /// From now on its end is somebody's wish.
    pub(crate) fn ask_to_end(&self) {
        self.asked_to_end.store(true, Ordering::Release);
    }

    /// Waits for its end.
    pub(crate) async fn ended(&self) -> EndReason {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(reason) => reason.unwrap_or(EndReason::Exited),
            // The watcher is gone with its server's tasks: nobody can say more.
            Err(_) => EndReason::Exited,
        }
    }

    pub(crate) fn has_ended(&self) -> Option<EndReason> {
        *self.ended.borrow()
    }
}

/// What a record says about its run.
pub(crate) fn execution(record: &Record) -> Execution {
    Execution { sandbox: record.id.clone(), id: record.execution.clone(), class: IsolationClass::Container, started_at: record.started_at }
}

#[expect(deprecated, reason = "its replacement is unsafe for types that could swap their descriptor; an `OwnedFd` cannot")]
fn readable(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(descriptor, Interest::READABLE)
}

struct Watcher {
    first: AsyncFd<OwnedFd>,
    cgroup: Cgroup,
    ledger: Arc<OomLedger>,
    asked_to_end: Arc<AtomicBool>,
    time_is_up: Option<SystemTime>,
}

impl Watcher {
    async fn run(self) -> EndReason {
        tokio::select! {
            ready = self.first.readable() => drop(ready),
            () = self.end_in_time() => drop(self.first.readable().await),
        }
        let ending = pidfd::reap(self.first.get_ref().as_fd());
        self.reason(ending.ok().flatten())
    }

    /// A child of an earlier server has no ending for us, but the kernel's count is still there.
    fn reason(&self, ending: Option<Ending>) -> EndReason {
        let killed = matches!(ending, None | Some(Ending::Signalled(_)));
        if self.asked_to_end.load(Ordering::Acquire) {
            EndReason::Killed
        } else if killed && self.ledger.has_unexplained_kills() {
            EndReason::OutOfMemory
        } else {
            EndReason::Exited
        }
    }

    async fn end_in_time(&self) {
        match self.time_is_up {
            Some(moment) => end_at(moment, self.cgroup.clone(), &self.asked_to_end).await,
            None => std::future::pending().await,
        }
    }
}

/// The first process of a sandbox that somebody else started: the one that is number 1 in its own pid namespace.
pub(crate) fn find_first(cgroup: &Cgroup) -> io::Result<Option<OwnedFd>> {
    let Some(members) = cgroup.procs_paths().into_iter().next() else { return Ok(None) };
    let members = match std::fs::read_to_string(members) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    for pid in members.lines().filter_map(|line| line.parse::<u32>().ok()) {
        let Ok(descriptor) = pidfd::open(pid) else { continue };
        let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { continue };
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
        let inside = numbers.split_whitespace().skip(1).last();
        if inside == Some("1") && !pidfd::has_ended(descriptor.as_fd())? {
            return Ok(Some(descriptor));
        }
    }
    Ok(None)
}
