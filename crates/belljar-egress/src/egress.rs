//! The whole of it: listeners in the gateway, and the sandboxes that are attached.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use belljar_linux::netns::Netns;
use belljar_policy::{Compiled, Format, Operator, parse};
use belljar_ports::{Attached, EgressAbilities, Toll};
use belljar_types::{ProjectId, Sandbox, SandboxId, Traffic};
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::Event;
use crate::dns::{Resolver, serve_tcp, serve_udp};
use crate::door;
use crate::error::EgressError;
use crate::inspect::client_config;
use crate::secrets::SecretKeeper;
use crate::session::{Session, Sessions};
use crate::uplink::Uplink;
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
    /// The file that stands for the network namespace from which the outside is reached; this process's own when unset.
    pub uplink: Option<PathBuf>,
    /// Who is asked for the addresses of names.
    pub resolver: Resolver,
    /// Whose certificates are trusted when TLS is read; with none, no TLS is.
    pub roots: Vec<CertificateDer<'static>>,
    /// Who keeps the secrets that are added to requests.
    pub secrets: Option<Arc<dyn SecretKeeper>>,
    /// Who knows where sandboxes are.
    pub lodge: Arc<dyn Lodge>,
}

/// The way out of all sandboxes of a host.
pub struct Egress {
    sessions: Arc<Sessions>,
    operator: Arc<Operator>,
    lodge: Arc<dyn Lodge>,
    events: mpsc::Sender<Event>,
    told: Mutex<Option<mpsc::Receiver<Event>>>,
    abilities: EgressAbilities,
    tasks: Vec<JoinHandle<()>>,
}

impl Egress {
    /// Opens the listeners. From now on whoever is attached has a way out.
    pub fn open(config: EgressConfig) -> Result<Arc<Self>, EgressError> {
        let (events, told) = mpsc::channel(EVENTS);
        let sessions = Arc::new(Sessions::default());
        let uplink = config.uplink.as_deref().map(Netns::open).transpose().map_err(EgressError::Uplink)?;
        let tls = if config.roots.is_empty() { None } else { Some(client_config(&config.roots).map_err(EgressError::Roots)?) };
        let abilities = EgressAbilities { inspection: tls.is_some(), secrets: tls.is_some() && config.secrets.is_some() };
        let outside = Arc::new(Outside { resolver: config.resolver, uplink: Uplink::new(uplink), tls, secrets: config.secrets });
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
        let told = Mutex::new(Some(told));
        Ok(Arc::new(Self { sessions, operator: config.operator, lodge: config.lodge, events, told, abilities, tasks }))
    }

    /// Lets a sandbox out as its policy says; before, and after [`Egress::detach`], nothing of it gets anywhere.
    ///
    /// The answer is the certificate that programs inside have to trust, if their TLS is read.
    pub async fn attach(
        &self,
        id: &SandboxId,
        project: &ProjectId,
        policy: &str,
        toll: Arc<dyn Toll>,
    ) -> Result<Option<String>, EgressError> {
        let compiled = self.compile(id, policy)?;
        let lodging = self.lodge.lodging(id).await.map_err(|source| EgressError::Address { id: id.clone(), source })?;
        if let Some((at, session)) = self.sessions.of(id)
            && at == lodging.guest
        {
            return self.hold(&session, compiled);
        }
        let session = Session::new(id.clone(), project.clone(), lodging.gateway, Arc::clone(&compiled), toll, self.events.clone());
        let certificate = self.hold(&session, compiled)?;
        self.sessions.insert(lodging.guest, Arc::new(session));
        Ok(certificate)
    }

    fn hold(&self, session: &Session, policy: Arc<Compiled>) -> Result<Option<String>, EgressError> {
        let names = if self.abilities.inspection { policy.inspected_names().to_vec() } else { Vec::new() };
        let authority = session
            .renew_authority(names)
            .map_err(|source| EgressError::Authority { id: session.sandbox.clone(), source: Box::new(source) })?;
        session.change(policy);
        Ok(authority.map(|authority| authority.pem().to_owned()))
    }

    /// Replaces the policy of a sandbox. Connections that it does not allow are cut at once. Does nothing if the sandbox is not attached.
    pub fn change(&self, id: &SandboxId, policy: &str) -> Result<Option<String>, EgressError> {
        let compiled = self.compile(id, policy)?;
        self.sessions.of(id).map_or(Ok(None), |(_, session)| self.hold(&session, compiled))
    }

    /// Ends everything of a sandbox at the boundary. Does nothing if there is nothing.
    pub fn detach(&self, id: &SandboxId) {
        self.sessions.remove(id);
    }

    /// What an attached sandbox used since it was attached.
    pub fn traffic(&self, id: &SandboxId) -> Option<Traffic> {
        self.sessions.of(id).map(|(_, session)| session.traffic())
    }

    /// What happens at the boundary, for the one who asks first.
    pub fn events(&self) -> Option<mpsc::Receiver<Event>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn compile(&self, id: &SandboxId, policy: &str) -> Result<Arc<Compiled>, EgressError> {
        let compiled = parse(policy, Format::Json).and_then(|policy| Compiled::new(&policy, &self.operator));
        compiled.map(Arc::new).map_err(|source| EgressError::Policy { id: id.clone(), source })
    }
}

#[async_trait]
impl belljar_ports::Egress for Egress {
    fn abilities(&self) -> EgressAbilities {
        self.abilities
    }

    async fn attach(&self, sandbox: &Sandbox, toll: Arc<dyn Toll>) -> Result<Attached, belljar_ports::EgressError> {
        let policy = sandbox.spec.policy.as_deref().unwrap_or(NOTHING);
        let attached = Egress::attach(self, &sandbox.id, &sandbox.project, policy, toll).await;
        attached.map(|certificate| Attached { certificate }).map_err(|source| failed("let it out", sandbox, source))
    }

    async fn change(&self, sandbox: &Sandbox) -> Result<Attached, belljar_ports::EgressError> {
        let policy = sandbox.spec.policy.as_deref().unwrap_or(NOTHING);
        Egress::change(self, &sandbox.id, policy)
            .map(|certificate| Attached { certificate })
            .map_err(|source| failed("change what it may", sandbox, source))
    }

    fn detach(&self, id: &SandboxId) {
        Egress::detach(self, id);
    }

    fn traffic(&self, id: &SandboxId) -> Option<Traffic> {
        Egress::traffic(self, id)
    }

    fn events(&self) -> Option<mpsc::Receiver<Event>> {
        Egress::events(self)
    }
}

/// A sandbox without a policy gets nowhere.
const NOTHING: &str = r#"{"version":1}"#;

fn failed(operation: &'static str, sandbox: &Sandbox, source: EgressError) -> belljar_ports::EgressError {
    belljar_ports::EgressError { operation, id: sandbox.id.clone(), source: Box::new(source) }
}

impl Drop for Egress {
    fn drop(&mut self) {
        self.sessions.clear();
        for task in &self.tasks {
            task.abort();
        }
    }
}
