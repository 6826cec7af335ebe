//! The way to a sandbox's agent, with the token from its record: by a socket in its home on the host, if its engine shares the host's kernel and
//! opened one; else from the gateway's namespace over the cable of its slot. Every engine's agent is judged by the same counter of the host's kernel
//! when it says how a process ended.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use belljar_guest_client::{AsyncStream, Connect, Credentials, GuestClient, JudgedGuest, OomLedger, OutsideAttributes};
use belljar_guest_protocol::AGENT_PORT;
use belljar_linux::nearby;
use belljar_ports::GuestError;
use belljar_types::Termination;
use tokio::net::UnixStream;
use tokio::sync::{OwnedRwLockWriteGuard, RwLock};

use crate::guest_files;
use crate::host::{Host, Reservation};
use crate::record::{Identity, Record};

/// The agent of one sandbox, and the book of its memory kills.
pub struct Agent {
    /// What can be done inside.
    pub guest: Arc<JudgedGuest<GuestClient>>,
    /// Which deaths the kernel's count explains.
    pub ledger: Arc<OomLedger>,
    /// Keeps connections from being made.
    pub gate: Gate,
}

/// The name of the agent's socket in a sandbox's home.
const DOOR: &str = "agent";

impl Reservation {
    /// Opens the socket at which the host will find the agent, for its process to accept from. `None` where the kernel has none that is safe to
    /// read from: then the agent has to listen on its network.
    pub fn open_door(&self) -> io::Result<Option<OwnedFd>> {
        // A sandbox that was paused had one, perhaps on another kernel.
        match std::fs::remove_file(self.home.join(DOOR)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let door = nearby::available()?.then(|| nearby::listen(&self.home, DOOR)).transpose()?;
        Ok(door.map(OwnedFd::from))
    }
}

/// Open unless somebody holds it shut.
pub type Gate = Arc<RwLock<()>>;

impl Host {
    /// The agent of the sandbox with this record; no connection is made yet. `by_memory` says how the end of a process looks from inside
    /// when the host's kernel kills it for memory; `attributes` keeps what its kernel cannot.
    pub fn agent(
        self: &Arc<Self>,
        record: &Record,
        by_memory: fn(Termination) -> bool,
        attributes: Option<Arc<dyn OutsideAttributes>>,
    ) -> Agent {
        let gate = Gate::default();
        let route = self.route(record, &gate);
        let Identity { sandbox, execution, token } = record.identity();
        let credentials = Credentials { sandbox, execution, token };
        let cgroup = self.cgroup(&record.id);
        let ledger = Arc::new(OomLedger::new(move || cgroup.oom_kills().unwrap_or(0), by_memory));
        let guest = JudgedGuest::new(GuestClient::new(Arc::new(route), credentials), Arc::clone(&ledger), attributes);
        Agent { guest: Arc::new(guest), ledger, gate }
    }
}

impl Host {
    /// The agent of a sandbox that was just restored from memory: it is at the new address, and takes itself for whom it was then.
    pub fn restored_agent(self: &Arc<Self>, record: &Record, identity: &Identity) -> RestoredAgent {
        let Identity { sandbox, execution, token } = identity.clone();
        let client = GuestClient::new(Arc::new(self.route(record, &Gate::default())), Credentials { sandbox, execution, token });
        RestoredAgent { client, record: record.clone() }
    }

    /// Ends all connections to the agent and returns when it has noticed; none is made until the answer is dropped.
    pub async fn hang_up(self: &Arc<Self>, record: &Record, gate: &Gate) -> Result<OwnedRwLockWriteGuard<()>, GuestError> {
        let shut = Arc::clone(gate).write_owned().await;
        let (host, address) = (Arc::clone(self), record.guest_address);
        let closed = tokio::task::spawn_blocking(move || host.gateway().close_connections_to(address)).await;
        let closed = closed.unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into()));
        closed.map_err(|source| GuestError::Lost { operation: "hang up", source })?;
        self.restored_agent(record, &record.identity()).client.farewell().await?;
        Ok(shut)
    }

    fn route(self: &Arc<Self>, record: &Record, gate: &Gate) -> Route {
        let home = self.home(&record.id);
        let way = if home.join(DOOR).exists() {
            Way::Door { home }
        } else {
            Way::Cable { host: Arc::clone(self), address: (record.guest_address, AGENT_PORT).into() }
        };
        Route { way, gate: Arc::clone(gate) }
    }
}

/// An agent that has to be told who it is now.
pub struct RestoredAgent {
    /// Its old self.
    pub client: GuestClient,
    record: Record,
}

impl RestoredAgent {
    /// Tells it. Its old secret, which every sandbox restored from the same memory has, is worth nothing from then on.
    pub async fn renew(self) -> Result<(), GuestError> {
        let record = &self.record;
        let to = Credentials { sandbox: record.id.clone(), execution: record.execution.clone(), token: record.token.clone() };
        let hostname = record.spec.hostname.as_deref().unwrap_or(record.id.as_str());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok().and_then(|now| u64::try_from(now.as_nanos()).ok());
        self.client.renew(&to, Some(record.gateway_address), now, Some(hostname), guest_files::environment(&record.spec)).await
    }
}

struct Route {
    way: Way,
    gate: Gate,
}

enum Way {
    Door { home: PathBuf },
    Cable { host: Arc<Host>, address: SocketAddr },
}

#[async_trait]
impl Connect for Route {
    async fn connect(&self) -> io::Result<Box<dyn AsyncStream>> {
        let _open = self.gate.read().await;
        Ok(match &self.way {
            Way::Door { home } => Box::new(UnixStream::from_std(nearby::connect(home, DOOR)?)?),
            Way::Cable { host, address } => Box::new(host.gateway().connect(*address).await?),
        })
    }
}
