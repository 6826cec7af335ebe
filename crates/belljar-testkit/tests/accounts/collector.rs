//! Whoever the audit log is carried to: a webhook and a collector of log records, which may refuse, and check what they get.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;

pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

#[derive(Default)]
struct Taken {
    refuses: bool,
    refused: usize,
    hook: Vec<String>,
    otlp: Vec<String>,
}

pub(crate) struct Collector {
    pub(crate) address: String,
    taken: Arc<Mutex<Taken>>,
}

impl Collector {
    pub(crate) async fn open() -> Self {
        let taken = Arc::new(Mutex::new(Taken::default()));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let router = axum::Router::new().route("/hook", post(hook)).route("/v1/logs", post(otlp)).with_state(Arc::clone(&taken));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, taken }
    }

    pub(crate) fn refuse(&self, refuses: bool) {
        self.taken.lock().unwrap().refuses = refuses;
    }

    pub(crate) fn refused(&self) -> usize {
        self.taken.lock().unwrap().refused
    }

    /// What the webhook took of a project, and what the collector did.
    pub(crate) fn lines(&self, project: &str) -> [Vec<String>; 2] {
        let taken = self.taken.lock().unwrap();
        [once(project, taken.hook.iter().cloned()), once(project, taken.otlp.iter().cloned())]
    }
}

/// Lines of a project's log in the order in which they came first. What comes again says the same, and nothing comes before its turn.
pub(crate) fn once(project: &str, lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut known = BTreeMap::new();
    for line in lines {
        let event: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        if event["project"] != project {
            continue;
        }
        let number = event["seq"].as_u64().unwrap();
        assert!(number <= known.len() as u64 + 1, "{number} after {}", known.len());
        assert_eq!(known.entry(number).or_insert_with(|| line.clone()), &line);
    }
    known.into_values().collect()
}

/// The lines of a project's log itself.
pub(crate) fn log(directory: &Path) -> Vec<String> {
    let mut segments: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    segments.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    segments.sort();
    let text: String = segments.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    // What is being written has no end yet.
    text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).map(str::to_owned).collect()
}

fn takes(taken: &mut Taken) -> bool {
    taken.refused += usize::from(taken.refuses);
    !taken.refuses
}

async fn hook(State(taken): State<Arc<Mutex<Taken>>>, headers: HeaderMap, body: String) -> StatusCode {
    let mut taken = taken.lock().unwrap();
    if !takes(&mut taken) {
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    let header = |name: &str| headers.get(name).unwrap().to_str().unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&STANDARD.decode(SECRET.strip_prefix("whsec_").unwrap()).unwrap()).unwrap();
    mac.update(format!("{}.{}.{body}", header("webhook-id"), header("webhook-timestamp")).as_bytes());
    assert_eq!(header("webhook-signature"), format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())));
    let mut rest = body.split_once("\"events\":[").unwrap().1;
    while rest.starts_with('{') {
        let mut events = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        events.next().unwrap().unwrap();
        let (event, after) = rest.split_at(events.byte_offset());
        taken.hook.push(event.to_owned());
        rest = after.trim_start_matches(',');
    }
    assert_eq!(rest, "]}");
    StatusCode::NO_CONTENT
}

async fn otlp(State(taken): State<Arc<Mutex<Taken>>>, body: String) -> StatusCode {
    let mut taken = taken.lock().unwrap();
    if !takes(&mut taken) {
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["resourceLogs"][0]["resource"]["attributes"][0]["value"]["stringValue"], "belljar");
    for record in body["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array().unwrap() {
        assert!(record["timeUnixNano"].as_str().unwrap().parse::<u64>().unwrap() > 1_000_000_000_000_000_000, "{record}");
        assert!(record["eventName"].as_str().unwrap().starts_with("belljar.audit."), "{record}");
        taken.otlp.push(record["body"]["stringValue"].as_str().unwrap().to_owned());
    }
    StatusCode::OK
}
