//! A sandbox with a way out, and the internet it leads to.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use belljar_egress::{Egress, EgressConfig, EgressError, Event, Lodge, Lodging, Resolver, SecretKeeper};
use belljar_host::{Host, NAME_PORT, PROXY_PORT};
use belljar_policy::Operator;
use belljar_ports::Toll;
use belljar_testkit::{Finished, Lab, Sandbox, run};
use belljar_types::{IsolationClass, Network, ProjectId, SandboxId, Secret};
use tokio::sync::{Mutex, MutexGuard, mpsc};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use crate::internet::{self, Internet, NAMES};
use crate::prelude::PRELUDE;

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
    {"id":"odd","hosts":["rebind.test","mixed.test","turning.test"],"ports":[80]},
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
        let certificate = egress.attach(&spec.id, &project(), policy, free()).await.unwrap();
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
        egress.attach(self.id(), &project(), policy, free()).await.unwrap();
        (self.egress, self.events) = (Some(egress), events);
    }

    pub(crate) async fn close(self) {
        self.egress().detach(self.id());
        self.sandbox.destroy().await;
    }
}

/// Without a budget.
#[derive(Debug)]
struct Free;

impl Toll for Free {
    fn leaving(&self, bytes: u64) -> u64 {
        bytes
    }

    fn entering(&self, bytes: u64) -> u64 {
        bytes
    }
}

pub(crate) fn free() -> Arc<dyn Toll> {
    Arc::new(Free)
}

/// What the server does through the agent.
pub(crate) async fn trust(sandbox: &Sandbox, certificate: &str) {
    let script = format!(
        "printf '%s' '{certificate}' | sudo tee /etc/ssl/certs/belljar.pem >/dev/null && cat /etc/ssl/certs/belljar.pem | sudo tee -a /etc/ssl/certs/ca-certificates.crt >/dev/null"
    );
    run(&*sandbox.guest, &["/bin/bash", "-c", &script]).await.text();
}

fn open_egress(lab: &Lab, uplink: PathBuf, operator: Operator) -> Result<(Arc<Egress>, mpsc::Receiver<Event>), EgressError> {
    let egress = Egress::open(EgressConfig {
        gateway: lab.host.gateway().netns_path().to_owned(),
        name_port: NAME_PORT,
        proxy_port: PROXY_PORT,
        operator: Arc::new(operator),
        uplink: Some(uplink),
        resolver: Resolver::new(vec![format!("{NAMES}:53").parse().unwrap()]),
        roots: vec![CertificateDer::from_pem_slice(internet::authority().pem.as_bytes()).unwrap()],
        secrets: Some(Arc::new(Keeper)),
        lodge: Arc::new(OnHost(Arc::clone(&lab.host))),
    })?;
    let events = egress.events().unwrap();
    Ok((egress, events))
}

pub(crate) fn project() -> ProjectId {
    "default".parse().unwrap()
}
