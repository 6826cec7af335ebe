//! A sandbox with a way out, and the internet it leads to.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use belljar_egress::{Egress, EgressConfig, EgressError, Event, Lodge, Lodging, Resolver, SecretKeeper};
use belljar_host::{Host, NAME_PORT, PROXY_PORT};
use belljar_policy::Operator;
use belljar_testkit::{Finished, Lab, Sandbox, run};
use belljar_types::{IsolationClass, Network, ProjectId, SandboxId, Secret};
use tokio::sync::{Mutex, MutexGuard, mpsc};

use crate::internet::{self, Internet, NAMES};

/// The one secret there is.
pub(crate) const SECRET: &str = "s3cret-4f9a1c77d2e8";

struct Keeper;

impl SecretKeeper for Keeper {
    fn reveal(&self, project: &ProjectId, name: &str) -> Option<Secret<String>> {
        (*project == crate::scene::project() && name == "model-key").then(|| Secret::new(SECRET.to_owned()))
    }
}

struct OnHost(Arc<Host>);

#[async_trait]
impl Lodge for OnHost {
    async fn lodging(&self, id: &SandboxId) -> Result<Lodging, Box<dyn std::error::Error + Send + Sync>> {
        let record = self.0.record(id).await?.ok_or("it is not here")?;
        Ok(Lodging { guest: record.guest_address, gateway: record.gateway_address })
    }
}

/// One at a time: the gateway has one proxy.
static TURN: Mutex<()> = Mutex::const_new(());

pub(crate) struct Scene {
    pub(crate) lab: &'static Lab,
    pub(crate) internet: Internet,
    egress: Option<Arc<Egress>>,
    operator: Operator,
    pub(crate) events: mpsc::Receiver<Event>,
    pub(crate) sandbox: Sandbox,
    _turn: MutexGuard<'static, ()>,
}

/// Everything may be reached: what an attack looks like where nothing forbids it.
pub(crate) const EVERYTHING: &str = r#"{"version":1,"network":{"default":"allow"}}"#;
/// What most attacks run against.
pub(crate) const POLICY: &str = r#"{"version":1,"network":{"allow":[
    {"id":"site","hosts":["allowed.test"],"ports":[80,443]},
    {"id":"wild","hosts":["*.wild.test"],"ports":[80]},
    {"id":"odd","hosts":["rebind.test","mixed.test"],"ports":[80]},
    {"id":"lan","cidrs":["10.0.0.0/8","169.254.0.0/16","127.0.0.0/8","100.64.0.0/10"],"ports":["*"]}]}}"#;

impl Scene {
    pub(crate) async fn open(class: IsolationClass, policy: &str) -> Self {
        Self::with(class, policy, Operator::default()).await
    }

    /// Where nothing is closed.
    pub(crate) async fn control(class: IsolationClass) -> Self {
        let operator = Operator { reachable: vec!["0.0.0.0/0".parse().unwrap()], ..Operator::default() };
        Self::with(class, EVERYTHING, operator).await
    }

    pub(crate) async fn with(class: IsolationClass, policy: &str, operator: Operator) -> Self {
        let turn = TURN.lock().await;
        static NUMBER: OnceLock<std::sync::atomic::AtomicU32> = OnceLock::new();
        let number = NUMBER.get_or_init(Default::default).fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let lab = Lab::get().await;
        let internet = Internet::open(&number.to_string());
        let (egress, events) = open_egress(lab, internet.uplink.clone(), operator.clone()).unwrap();
        let spec = belljar_types::SandboxSpec { network: Network::Filtered, ..lab.spec() };
        let sandbox = lab.create(class, &spec).await.unwrap();
        let certificate = egress.attach(&spec.id, &project(), policy).await.unwrap();
        if let Some(certificate) = certificate {
            trust(&sandbox, &certificate).await;
        }
        internet.seen();
        Self { lab, internet, egress: Some(egress), operator, events, sandbox, _turn: turn }
    }

    pub(crate) fn id(&self) -> &SandboxId {
        &self.sandbox.execution.sandbox
    }

    pub(crate) async fn python(&self, script: &str) -> Finished {
        run(&*self.sandbox.guest, &["/usr/bin/python3", "-c", script]).await
    }

    /// Whether a script says that it got through.
    pub(crate) async fn gets_through(&self, script: &str) -> bool {
        let done = self.python(&format!("{PRELUDE}\n{script}")).await;
        match done.code() {
            0 => true,
            3 => false,
            _ => panic!("the script is wrong: {done}"),
        }
    }

    pub(crate) fn egress(&self) -> &Egress {
        self.egress.as_ref().unwrap()
    }

    pub(crate) fn shared_egress(&self) -> Arc<Egress> {
        Arc::clone(self.egress.as_ref().unwrap())
    }

    /// Ends the proxy and the name service with all their connections.
    pub(crate) async fn kill_proxy(&mut self) {
        self.egress = None;
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }

    /// What a server does that comes back.
    pub(crate) async fn start_proxy(&mut self, policy: &str) {
        let (egress, events) = open_egress(self.lab, self.internet.uplink.clone(), self.operator.clone()).unwrap();
        egress.attach(self.id(), &project(), policy).await.unwrap();
        (self.egress, self.events) = (Some(egress), events);
    }

    pub(crate) async fn close(self) {
        self.egress().detach(self.id());
        self.sandbox.destroy().await;
    }
}

/// What the server does through the agent.
async fn trust(sandbox: &Sandbox, certificate: &str) {
    let script = format!(
        "printf '%s' '{certificate}' | sudo tee /etc/ssl/certs/belljar.pem >/dev/null && cat /etc/ssl/certs/belljar.pem | sudo tee -a /etc/ssl/certs/ca-certificates.crt >/dev/null"
    );
    run(&*sandbox.guest, &["/bin/bash", "-c", &script]).await.text();
}

fn open_egress(lab: &Lab, uplink: PathBuf, operator: Operator) -> Result<(Arc<Egress>, mpsc::Receiver<Event>), EgressError> {
    Egress::open(EgressConfig {
        gateway: lab.host.gateway().netns_path().to_owned(),
        name_port: NAME_PORT,
        proxy_port: PROXY_PORT,
        operator: Arc::new(operator),
        uplink: Some(uplink),
        resolver: Resolver::new(vec![format!("{NAMES}:53").parse().unwrap()]),
        roots: vec![internet::authority().der.clone()],
        secrets: Some(Arc::new(Keeper)),
        lodge: Arc::new(OnHost(Arc::clone(&lab.host))),
    })
}

pub(crate) fn project() -> ProjectId {
    "default".parse().unwrap()
}

/// An attack ends with 0 if it got through and with 3 if it was stopped; anything else is a mistake in it.
pub(crate) const PRELUDE: &str = r#"
import os, socket, ssl, struct, sys, time
socket.setdefaulttimeout(8)
def stopped(*a):
    print(*a, file=sys.stderr); sys.exit(3)
def hook(kind, error, trace):
    if issubclass(kind, (OSError, EOFError)):
        print(kind, error, file=sys.stderr); sys.stderr.flush(); os._exit(3)
    sys.__excepthook__(kind, error, trace)
sys.excepthook = hook
def recv_all(s):
    data = b''
    while True:
        part = s.recv(65536)
        if not part: return data
        data += part
def recv_some(s):
    data = s.recv(65536)
    if not data: stopped('closed')
    return data
def http(to, port, request):
    s = socket.create_connection((to, port)); s.sendall(request)
    data = recv_some(s)
    print(data[:200], file=sys.stderr)
    if not data.startswith(b'HTTP/1.1 200'): stopped(data[:200])
    return data
def get(to, port=80, host=None):
    return http(to, port, b'GET / HTTP/1.1\r\nHost: ' + (host or to).encode() + b'\r\n\r\n')
def tls(to, port, name):
    context = ssl.create_default_context(); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(socket.create_connection((to, port)), server_hostname=name)
def gateway():
    for line in open('/etc/resolv.conf'):
        if line.startswith('nameserver'): return line.split()[1]
def question(name, kind=1, to=None, tcp=False):
    q = b'\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00' + b''.join(bytes([len(l)]) + l.encode() for l in name.split('.')) + b'\x00' + struct.pack('>HH', kind, 1)
    to = to or gateway()
    if tcp:
        s = socket.create_connection((to, 53)); s.sendall(struct.pack('>H', len(q)) + q); a = recv_some(s)[2:]
    else:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(q, (to, 53)); a = s.recv(4096)
    return a[3] & 15, struct.unpack('>H', a[6:8])[0]
"#;
