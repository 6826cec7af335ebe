//! The way to a sandbox's agent: from the gateway's namespace over the cable of its slot, with the token from its record. Every engine
//! goes this way, and every engine's agent is judged by the same counter of the host's kernel when it says how a process ended.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use belljar_guest_client::{AsyncStream, Connect, Credentials, GuestClient, JudgedGuest, OomLedger};
use belljar_guest_protocol::AGENT_PORT;
use belljar_types::Termination;

use crate::host::Host;
use crate::record::Record;

/// The agent of one sandbox, and the book of its memory kills.
pub struct Agent {
    /// What can be done inside.
    pub guest: Arc<JudgedGuest<GuestClient>>,
    /// Which deaths the kernel's count explains.
    pub ledger: Arc<OomLedger>,
}

impl Host {
    /// The agent of the sandbox with this record; no connection is made yet. `by_memory` says how the end of a process looks from inside
    /// when the host's kernel kills it for memory.
    pub fn agent(self: &Arc<Self>, record: &Record, by_memory: fn(Termination) -> bool) -> Agent {
        let route = ThroughGateway { host: Arc::clone(self), address: (record.guest_address, AGENT_PORT).into() };
        let credentials = Credentials { sandbox: record.id.clone(), execution: record.execution.clone(), token: record.token.clone() };
        let cgroup = self.cgroup(&record.id);
        let ledger = Arc::new(OomLedger::new(move || cgroup.oom_kills().unwrap_or(0), by_memory));
        let guest = JudgedGuest::new(GuestClient::new(Arc::new(route), credentials), Arc::clone(&ledger));
        Agent { guest: Arc::new(guest), ledger }
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
