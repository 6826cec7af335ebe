//! What this process keeps for a sandbox that runs: its agent, whose answers are judged by the host's memory kills, and its clock.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use belljar_guest_client::{AsyncStream, Connect, Credentials, GuestClient, JudgedGuest, OomLedger};
use belljar_guest_protocol::AGENT_PORT;
use belljar_host::{Cgroup, Host, Record};
use belljar_types::Termination;
use tokio::task::AbortHandle;

/// A sandbox that this process made or found.
pub(crate) struct Live {
    pub(crate) guest: Arc<JudgedGuest<GuestClient>>,
    ledger: Arc<OomLedger>,
    asked_to_end: Arc<AtomicBool>,
    clock: Option<AbortHandle>,
}

impl Live {
    pub(crate) fn new(host: &Arc<Host>, record: &Record) -> Self {
        let cgroup = host.cgroup(&record.id);
        let counted = cgroup.clone();
        let ledger = Arc::new(OomLedger::new(move || counted.oom_kills().unwrap_or(0), ends_by_memory));
        let asked_to_end = Arc::new(AtomicBool::new(false));
        let time_is_up = record.spec.limits.wall_time.map(|life| record.started_at + life);
        let clock = time_is_up.map(|when| tokio::spawn(end_at(when, cgroup, asked_to_end.clone())).abort_handle());
        Self { guest: Arc::new(JudgedGuest::new(agent(host, record), ledger.clone())), ledger, asked_to_end, clock }
    }

    /// From now on its end is somebody's wish.
    pub(crate) fn ask_to_end(&self) {
        self.asked_to_end.store(true, Ordering::Release);
    }

    pub(crate) fn was_asked_to_end(&self) -> bool {
        self.asked_to_end.load(Ordering::Acquire)
    }

    /// Whether the kernel killed something for memory that was no process of ours: then it was the sentry.
    pub(crate) fn ended_by_memory(&self) -> bool {
        self.ledger.has_unexplained_kills()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(clock) = &self.clock {
            clock.abort();
        }
    }
}

/// The sentry turns the death of a stub into an ordinary exit, with the number of an error it has no number for.
fn ends_by_memory(termination: Termination) -> bool {
    termination == Termination::Exited(1)
}

async fn end_at(when: SystemTime, cgroup: Cgroup, asked_to_end: Arc<AtomicBool>) {
    tokio::time::sleep(when.duration_since(SystemTime::now()).unwrap_or(Duration::ZERO)).await;
    asked_to_end.store(true, Ordering::Release);
    let id = cgroup.name().to_owned();
    let killed = tokio::task::spawn_blocking(move || cgroup.kill()).await;
    if !matches!(killed, Ok(Ok(()))) {
        tracing::error!(sandbox_id = id, "the sandbox's time is up, but it could not be killed");
    }
}

struct ThroughGateway {
    host: Arc<Host>,
    address: SocketAddr,
}

#[async_trait]
impl Connect for ThroughGateway {
    async fn connect(&self) -> io::Result<Box<dyn AsyncStream>> {
        Ok(Box::new(self.host.gateway().connect(self.address).await?))
    }
}

fn agent(host: &Arc<Host>, record: &Record) -> GuestClient {
    let address = (record.guest_address, AGENT_PORT).into();
    let credentials = Credentials { sandbox: record.id.clone(), execution: record.execution.clone(), token: record.token.clone() };
    GuestClient::new(Arc::new(ThroughGateway { host: host.clone(), address }), credentials)
}
