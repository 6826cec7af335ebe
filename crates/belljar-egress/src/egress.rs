//! The whole of it: listeners in the gateway, and the sandboxes that are attached.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use belljar_linux::netns::Netns;
use belljar_policy::{Compiled, Format, Operator, parse};
use belljar_types::SandboxId;
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::counts::Traffic;
use crate::dns::{Resolver, serve_tcp, serve_udp};
use crate::door;
use crate::error::EgressError;
use crate::event::Event;
use crate::session::{Session, Sessions};
use crate::way::Outside;

/// How many events may wait for whoever keeps a record.
const EVENTS: usize = 4096;

/// Where a sandbox is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lodging {
    /// The address its packets come from.
    pub guest: Ipv4Addr,
    /// The gateway's address on its cable.
    pub gateway: Ipv4Addr,
}

/// Who knows where sandboxes are.
#[async_trait]
pub trait Lodge: Send + Sync {
    /// Where this one is at the moment.
    async fn lodging(&self, id: &SandboxId) -> Result<Lodging, Box<dyn std::error::Error + Send + Sync>>;
}

/// What the way out is built from.
pub struct EgressConfig {
    /// The file that stands for the gateway's network namespace.
    pub gateway: PathBuf,
    /// Where the firewall sends questions for names.
    pub name_port: u16,
    /// Where it sends connections.
    pub proxy_port: u16,
    /// What the operator decided.
    pub operator: Arc<Operator>,
    /// Who is asked for the addresses of names.
    pub resolver: Resolver,
    /// Who knows where sandboxes are.
    pub lodge: Arc<dyn Lodge>,
}

/// The way out of all sandboxes of a host.
pub struct Egress {
    sessions: Arc<Sessions>,
    operator: Arc<Operator>,
    lodge: Arc<dyn Lodge>,
    events: mpsc::Sender<Event>,
    tasks: Vec<JoinHandle<()>>,
}

impl Egress {
    /// Opens the listeners. From now on whoever is attached has a way out. The other half is what happens there, for whoever keeps a record.
    pub fn open(config: EgressConfig) -> Result<(Arc<Self>, mpsc::Receiver<Event>), EgressError> {
        let (events, told) = mpsc::channel(EVENTS);
        let sessions = Arc::new(Sessions::default());
        let outside = Arc::new(Outside { resolver: config.resolver });
        let gateway = Netns::open(&config.gateway).map_err(EgressError::Gateway)?;
        let listen = |port: u16, what| {
            let made = gateway.run(|| std::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)));
            let made = made.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
            made.and_then(TcpListener::from_std).map_err(|source| EgressError::Listen { what, source })
        };
        let proxy = listen(config.proxy_port, "connections")?;
        let names = listen(config.name_port, "names over TCP")?;
        let datagrams = gateway.run(|| std::net::UdpSocket::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, config.name_port))));
        let datagrams = datagrams.and_then(|socket| socket.set_nonblocking(true).map(|()| socket)).and_then(UdpSocket::from_std);
        let datagrams = datagrams.map_err(|source| EgressError::Listen { what: "names", source })?;
        let tasks = vec![
            tokio::spawn(door::serve(proxy, Arc::clone(&sessions), outside)),
            tokio::spawn(serve_tcp(names, Arc::clone(&sessions))),
            tokio::spawn(serve_udp(datagrams, Arc::clone(&sessions))),
        ];
        Ok((Arc::new(Self { sessions, operator: config.operator, lodge: config.lodge, events, tasks }), told))
    }

    /// Lets a sandbox out as its policy says; before, and after [`Egress::detach`], nothing of it gets anywhere.
    pub async fn attach(&self, id: &SandboxId, policy: &str) -> Result<(), EgressError> {
        let compiled = self.compile(id, policy)?;
        let lodging = self.lodge.lodging(id).await.map_err(|source| EgressError::Address { id: id.clone(), source })?;
        let session = Session::new(id.clone(), lodging.gateway, compiled, self.events.clone());
        self.sessions.insert(lodging.guest, Arc::new(session));
        Ok(())
    }

    /// Replaces the policy of a sandbox. Connections that it does not allow are cut at once. `false` if the sandbox is not attached.
    pub fn change(&self, id: &SandboxId, policy: &str) -> Result<bool, EgressError> {
        let compiled = self.compile(id, policy)?;
        Ok(self.sessions.of(id).is_some_and(|(_, session)| {
            session.change(compiled);
            true
        }))
    }

    /// Ends everything of a sandbox at the boundary. Does nothing if there is nothing.
    pub fn detach(&self, id: &SandboxId) {
        self.sessions.remove(id);
    }

    /// What an attached sandbox used since it was attached.
    pub fn traffic(&self, id: &SandboxId) -> Option<Traffic> {
        self.sessions.of(id).map(|(_, session)| session.traffic())
    }

    fn compile(&self, id: &SandboxId, policy: &str) -> Result<Arc<Compiled>, EgressError> {
        let compiled = parse(policy, Format::Json).and_then(|policy| Compiled::new(&policy, &self.operator));
        compiled.map(Arc::new).map_err(|source| EgressError::Policy { id: id.clone(), source })
    }
}

impl Drop for Egress {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}
