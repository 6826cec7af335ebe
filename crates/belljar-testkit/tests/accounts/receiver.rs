//! A receiver of webhooks on a socket of its own, which takes messages or does not, and checks each as its owner would.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// One message that was taken.
#[derive(Debug, Clone)]
struct Taken {
    id: String,
    time: String,
    signature: String,
    body: String,
}

/// Everything that came.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    refuses: bool,
    pub(crate) refused: usize,
    taken: Vec<Taken>,
}

impl Told {
    /// What was told with this secret, by sandbox, in the order in which it came; what came twice is counted once.
    pub(crate) fn of(&self, secret: &str) -> BTreeMap<String, Vec<&'static str>> {
        let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
        let (mut seen, mut told) = (HashSet::new(), BTreeMap::<String, Vec<&'static str>>::new());
        for taken in self.taken.iter().filter(|taken| is_signed(taken, &key)) {
            let body: serde_json::Value = serde_json::from_str(&taken.body).unwrap();
            if seen.insert(&taken.id) {
                let kind = belljar_types::MessageKind::ALL.into_iter().find(|kind| body["type"] == kind.as_str()).unwrap();
                told.entry(body["data"]["sandbox"].as_str().unwrap().to_owned()).or_default().push(kind.as_str());
            }
        }
        told
    }
}

fn is_signed(taken: &Taken, key: &[u8]) -> bool {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(format!("{}.{}.{}", taken.id, taken.time, taken.body).as_bytes());
    taken.signature == format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

pub(crate) struct Receiver {
    pub(crate) url: String,
    told: Arc<Mutex<Told>>,
}

impl Receiver {
    pub(crate) async fn open() -> Self {
        let told = Arc::new(Mutex::new(Told::default()));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let router = axum::Router::new().route("/hook", axum::routing::post(take)).with_state(Arc::clone(&told));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, told }
    }

    pub(crate) fn refuse(&self, refuses: bool) {
        self.told.lock().unwrap().refuses = refuses;
    }

    pub(crate) fn told(&self) -> Told {
        self.told.lock().unwrap().clone()
    }

    /// Waits for something that has to come.
    pub(crate) async fn until(&self, so: impl Fn(&Told) -> bool) {
        for _ in 0..3600 {
            if so(&self.told()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("waited three minutes for something that did not come: {:?}", self.told());
    }
}

async fn take(State(told): State<Arc<Mutex<Told>>>, headers: HeaderMap, body: String) -> StatusCode {
    let header = |name: &str| headers.get(name).unwrap().to_str().unwrap().to_owned();
    let mut told = told.lock().unwrap();
    if told.refuses {
        told.refused += 1;
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    told.taken.push(Taken { id: header("webhook-id"), time: header("webhook-timestamp"), signature: header("webhook-signature"), body });
    StatusCode::NO_CONTENT
}
