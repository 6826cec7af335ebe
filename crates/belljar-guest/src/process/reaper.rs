//! Collects every child that ends, ours or an orphan of the sandbox's, and tells those who wait.
//!
//! Children are started on other threads, so one can be dead before its start has returned: while any start is under way, ends that nobody
//! waits for are kept.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use belljar_guest_protocol::Failure;
use belljar_types::Termination;
use rustix::process::{WaitOptions, WaitStatus, wait};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use super::launch::{Launch, Launched};

/// Who waits for which child.
#[derive(Default)]
pub(crate) struct Reaper {
    waiting: RefCell<HashMap<u32, oneshot::Sender<Termination>>>,
    unclaimed: RefCell<HashMap<u32, Termination>>,
    starts_under_way: Cell<usize>,
}

impl Reaper {
    /// Reaps for ever.
    pub(crate) async fn run(self: Rc<Self>) -> std::io::Result<()> {
        let mut ended = signal(SignalKind::child())?;
        loop {
            self.reap_all();
            ended.recv().await;
        }
    }

    /// Starts a child on another thread; its end comes through `Launched::ended`.
    pub(crate) async fn launch(self: &Rc<Self>, launch: Launch) -> Result<Launched, Failure> {
        self.starts_under_way.set(self.starts_under_way.get() + 1);
        let _under_way = UnderWay(Rc::clone(self));
        let started = crate::blocking::run(move || launch.start()).await?;
        let (tell, ended) = oneshot::channel();
        let already = self.unclaimed.borrow_mut().remove(&started.pid);
        match already {
            Some(termination) => drop(tell.send(termination)),
            None => drop(self.waiting.borrow_mut().insert(started.pid, tell)),
        }
        Ok(Launched { pid: started.pid, streams: started.streams, ended })
    }

    fn reap_all(&self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let Some(termination) = termination(status) else { continue };
            let pid = pid.as_raw_nonzero().get().unsigned_abs();
            if let Some(tell) = self.waiting.borrow_mut().remove(&pid) {
                // Whoever waited may have gone.
                let _ = tell.send(termination);
            } else if self.starts_under_way.get() > 0 {
                self.unclaimed.borrow_mut().insert(pid, termination);
            }
        }
    }
}

struct UnderWay(Rc<Reaper>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        let left = self.0.starts_under_way.get() - 1;
        self.0.starts_under_way.set(left);
        if left == 0 {
            self.0.unclaimed.borrow_mut().clear();
        }
    }
}

fn termination(status: WaitStatus) -> Option<Termination> {
    let exited = status.exit_status().map(Termination::Exited);
    exited.or_else(|| status.terminating_signal().and_then(|signal| u8::try_from(signal).ok()).map(Termination::Signaled))
}
