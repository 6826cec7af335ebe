//! A server on a socket of its own, two projects that know nothing of each other, and a small client.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Request, Response, StatusCode, header};
use belljar_api::ApiState;
use belljar_audit::AuditLog;
use belljar_core::{Parts, Service, ServiceConfig, SharedKernel};
use belljar_host::{HostRoom, TallyFile};
use belljar_http::{Front, Gate, GuestLog, Listen, Metrics, PortTokens, ServeLimits, Server};
use belljar_image::{Catalog, CatalogOptions, LayerStore};
use belljar_testkit::Lab;
use belljar_types::{IsolationClass, Secret};
use belljar_webhook::{Postman, Reach};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

pub(crate) const DOMAIN: &str = "boxes.example";
const ADMIN: &str = "bj_00112233445566778899aabbccddeeff00112233";

/// The server and the keys to it.
pub(crate) struct Scene {
    pub(crate) service: Arc<Service>,
    pub(crate) router: axum::Router,
    pub(crate) admin: Client,
    pub(crate) ours: Client,
    pub(crate) theirs: Client,
}

impl Scene {
    pub(crate) async fn get() -> &'static Self {
        static SCENE: OnceCell<Scene> = OnceCell::const_new();
        SCENE.get_or_init(Self::open).await
    }

    async fn open() -> Self {
        let lab = Lab::get().await;
        let directory = lab.data_dir.join("api-test");
        // What a run before left is of no use: its sandboxes are gone.
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        let store = belljar_store::open(&format!("sqlite:{}", directory.join("store.db").display())).await.unwrap();
        let layers = LayerStore::open(lab.host.pool_directory()).unwrap();
        let config = ServiceConfig { shared_kernel: SharedKernel::Allowed, ..ServiceConfig::default() };
        let parts = Parts {
            store,
            engines: vec![lab.runtime(IsolationClass::Container)],
            parcels: Arc::new(belljar_parcel::HostParcels::new(Arc::clone(&lab.host), layers.clone())),
            templates: Arc::new(Catalog::new(layers, CatalogOptions::default())),
            volumes: Arc::new(lab.host.volumes()),
            blobs: Arc::new(belljar_blobs::open_directory(&directory.join("blobs")).unwrap()),
            capacity: Arc::new(HostRoom::new(&lab.data_dir).unwrap()),
            tallies: Arc::new(TallyFile::open(&directory).unwrap()),
            courier: Arc::new(Postman::new([7; 32], Reach::default()).unwrap()),
            audit: Arc::new(AuditLog::open(&directory.join("audit")).unwrap()),
            egress: None,
            tapes: None,
            secrets: None,
            config,
        };
        let service = Service::start(parts).await.unwrap();
        assert!(service.bootstrap(&Secret::new(ADMIN.to_owned())).await.unwrap());
        let metrics = Arc::new(Metrics::default());
        let gate = Gate::new(Arc::clone(&service), None);
        let port_tokens = Arc::new(PortTokens::new([9; 32]));
        let state = ApiState {
            service: Arc::clone(&service),
            gate: Arc::clone(&gate),
            port_tokens: Arc::clone(&port_tokens),
            metrics: Arc::clone(&metrics),
            domain: Some(DOMAIN.to_owned()),
            upload_directory: directory.join("uploads"),
            max_upload_bytes: 1 << 20,
        };
        let router =
            belljar_api::router(state).route("/test/panic", axum::routing::get(async || -> StatusCode { panic!("a handler that breaks") }));
        let front = Front {
            service: Arc::clone(&service),
            gate,
            port_tokens,
            domain: Some(DOMAIN.to_owned()),
            router_takes_ports: false,
            metrics: Arc::clone(&metrics),
            guest_log: GuestLog::default(),
        };
        let router = Arc::new(front).around(router);
        let listen = Listen { address: "127.0.0.1:0".parse().unwrap(), tls: None, behind_proxy: false };
        let server = Server::bind(&[listen], ServeLimits::default()).await.unwrap();
        let address = server.addresses()[0];
        tokio::spawn(server.serve(router.clone(), metrics, CancellationToken::new()));
        let admin = Client { address, key: Some(ADMIN.to_owned()) };
        let ours = admin.member("ours").await;
        let theirs = admin.member("theirs").await;
        Self { service, router, admin, ours, theirs }
    }
}

/// Whoever asks, with a key or without.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) key: Option<String>,
}

/// An answer that was read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The JSON of a success, or the test fails with the problem.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert!(self.status.is_success(), "{} {}", self.status, String::from_utf8_lossy(&self.body));
        if self.body.is_empty() { Value::Null } else { self.json() }
    }

    /// The code of a problem with this status.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", String::from_utf8_lossy(&self.body));
        assert_eq!(self.headers[header::CONTENT_TYPE], "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["status"], status);
        assert_eq!(problem["request_id"].as_str().unwrap(), self.headers["x-request-id"].to_str().unwrap());
        problem
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        self.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(|line| serde_json::from_slice(line).unwrap()).collect()
    }
}

impl Client {
    pub(crate) fn stranger(&self) -> Self {
        Self { key: None, ..self.clone() }
    }

    /// A key of a project of that name that is made for it.
    async fn member(&self, project: &str) -> Self {
        self.post("/v1/projects", &json!({"id": project})).await.ok();
        let request = json!({"project": project, "scopes": ["read", "use", "templates"]});
        let made = self.post("/v1/keys", &request).await.ok();
        Self { key: Some(made["secret"].as_str().unwrap().to_owned()), ..self.clone() }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> axum::http::request::Builder {
        let builder = Request::builder().method(method).uri(path).header(header::HOST, self.address.to_string());
        match &self.key {
            Some(key) => builder.header(header::AUTHORIZATION, format!("Bearer {key}")),
            None => builder,
        }
    }

    /// Sends a request over a connection of its own; the answer's body is still to come.
    pub(crate) async fn open(&self, request: Request<Body>) -> Response<Incoming> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection.with_upgrades());
        sender.send_request(request).await.unwrap()
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let (parts, body) = self.open(request).await.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status, headers: parts.headers, body }
    }

    pub(crate) async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let builder = self.request(method, path);
        self.send(match body {
            Some(body) => builder.header(header::CONTENT_TYPE, "application/json").body(Body::from(body.to_string())).unwrap(),
            None => builder.body(Body::empty()).unwrap(),
        })
        .await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.ask(Method::DELETE, path, None).await
    }

    /// A fresh sandbox, and the path it is at.
    pub(crate) async fn sandbox(&self) -> String {
        let made = self.post("/v1/sandboxes", &json!({})).await.ok();
        assert_eq!(made["state"], "running");
        format!("/v1/sandboxes/{}", made["id"].as_str().unwrap())
    }

    /// Runs a line of shell to its end.
    pub(crate) async fn run(&self, sandbox: &str, command: &str) -> Value {
        self.post(&format!("{sandbox}/exec"), &json!({"command": command})).await.ok()
    }
}

/// Reads lines of a stream that goes on, until one is wanted.
pub(crate) struct Lines {
    body: Incoming,
    held: Vec<u8>,
}

impl Lines {
    pub(crate) fn of(response: Response<Incoming>) -> Self {
        assert!(response.status().is_success(), "{}", response.status());
        Self { body: response.into_body(), held: Vec::new() }
    }

    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.held.drain(..=end).collect();
                return Some(String::from_utf8(line).unwrap().trim_end().to_owned());
            }
            let frame = self.body.frame().await?.unwrap();
            self.held.extend_from_slice(frame.data_ref().unwrap());
        }
    }

    pub(crate) async fn json(&mut self) -> Value {
        serde_json::from_str(&self.next().await.unwrap()).unwrap()
    }
}

/// All output of one stream in a list of lines, checked for holes and for bytes given twice.
pub(crate) fn joined(lines: &[Value], stream: &str, from: u64) -> String {
    let mut at = from;
    let mut text = String::new();
    for line in lines.iter().filter(|line| line["type"] == "data" && line["stream"] == stream) {
        assert_eq!(line["offset"], at, "{line}");
        let piece = line["text"].as_str().unwrap();
        at += piece.len() as u64;
        text.push_str(piece);
    }
    text
}
