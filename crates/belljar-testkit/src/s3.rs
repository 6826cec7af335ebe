//! A service that speaks S3 over HTTP, for whatever keeps its bytes in a bucket: it checks every signature and every digest as Amazon's does,
//! refuses what that refuses, and keeps one bucket in a directory, so that tests can look at it, damage it, and stop it half-way.

mod answers;
mod objects;
mod signature;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use answers::{Query, Refusal};
use objects::Objects;

/// The bucket it has.
pub const BUCKET: &str = "belljar";
/// The name of the key it knows.
pub const ACCESS_KEY: &str = "AKIDBELLJARTEST";
/// That key.
pub const SECRET_KEY: &str = "a/secret+that=nobody:needs";
/// The region it is in.
pub const REGION: &str = "eu-test-1";

struct Service {
    objects: Objects,
    /// How many parts may be taken; whoever sends another waits.
    parts_allowed: watch::Sender<usize>,
    parts_taken: watch::Sender<usize>,
    served: AtomicUsize,
    refused: AtomicUsize,
}

/// A running service. It ends when dropped; its directory stays.
pub struct S3Server {
    address: SocketAddr,
    service: Arc<Service>,
    task: JoinHandle<()>,
}

impl S3Server {
    /// Starts one on a free port, with its bucket in `directory`. Lists are given in pages of `page`.
    pub async fn start(directory: &Path, page: usize) -> std::io::Result<Self> {
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let service = Arc::new(Service {
            objects: Objects::open(directory, page)?,
            parts_allowed: watch::Sender::new(usize::MAX),
            parts_taken: watch::Sender::new(0),
            served: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&service));
        let task = tokio::spawn(async move {
            // It ends by being aborted.
            let _ended = axum::serve(listener, router).await;
        });
        Ok(Self { address, service, task })
    }

    /// Where it is.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Keys of everything that is there whole.
    pub fn keys(&self) -> Vec<String> {
        self.service.objects.keys()
    }

    /// How many uploads in parts have neither been completed nor aborted.
    pub fn uploads_under_way(&self) -> usize {
        self.service.objects.uploads()
    }

    /// The file that holds an object.
    pub fn file(&self, key: &str) -> std::path::PathBuf {
        self.service.objects.file(key)
    }

    /// Lets so many parts in from now on and keeps whoever sends more waiting.
    pub fn allow_parts(&self, count: usize) {
        let taken = *self.service.parts_taken.borrow();
        self.service.parts_allowed.send_replace(taken.saturating_add(count));
    }

    /// How many parts have been taken in all.
    pub fn parts(&self) -> usize {
        *self.service.parts_taken.borrow()
    }

    /// Waits until this many parts have been taken in all.
    pub async fn parts_taken(&self, count: usize) {
        let mut taken = self.service.parts_taken.subscribe();
        drop(taken.wait_for(|taken| *taken >= count).await);
    }

    /// How many requests were served, and how many were refused.
    pub fn counts(&self) -> (usize, usize) {
        (self.service.served.load(Ordering::Relaxed), self.service.refused.load(Ordering::Relaxed))
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(State(service): State<Arc<Service>>, request: Request) -> Response {
    let head_only = request.method() == "HEAD";
    let answered = serve(&service, request).await;
    let count = if answered.is_ok() { &service.served } else { &service.refused };
    count.fetch_add(1, Ordering::Relaxed);
    answered.unwrap_or_else(|refusal| refusal.response(head_only))
}

async fn serve(service: &Service, request: Request) -> Result<Response, Refusal> {
    let (head, body) = request.into_parts();
    let digest = signature::check(&head)?;
    let query = Query::of(head.uri.query().unwrap_or_default());
    let path = percent_encoding::percent_decode_str(head.uri.path()).decode_utf8().map_err(|_| Refusal::BAD_REQUEST)?;
    let within = path.trim_start_matches('/');
    let (bucket, key) = within.split_once('/').unwrap_or((within, ""));
    if bucket != BUCKET {
        return Err(Refusal::NO_BUCKET);
    }
    let objects = &service.objects;
    match (head.method.as_str(), query.get("uploadId"), query.get("partNumber")) {
        ("GET", None, None) if key.is_empty() => objects.list(&query),
        ("GET", None, None) => objects.get(key, head.headers.get("range"), true).await,
        ("HEAD", None, None) => objects.get(key, None, false).await,
        ("PUT", None, None) => objects.put(key, body, &digest).await,
        ("DELETE", None, None) => objects.delete(key),
        ("POST", None, None) if query.get("uploads").is_some() => objects.begin(key),
        ("PUT", Some(upload), Some(part)) => {
            let mut allowed = service.parts_allowed.subscribe();
            let taken = *service.parts_taken.borrow();
            drop(allowed.wait_for(|allowed| *allowed > taken).await);
            let answer = objects.put_part(upload, part, body, &digest).await?;
            service.parts_taken.send_modify(|taken| *taken += 1);
            Ok(answer)
        }
        ("POST", Some(upload), None) => {
            let wanted = axum::body::to_bytes(body, 4 << 20).await.map_err(|_| Refusal::BAD_REQUEST)?;
            objects.complete(key, upload, &wanted, &digest)
        }
        ("DELETE", Some(upload), None) => objects.abort(upload),
        _ => Err(Refusal::BAD_REQUEST),
    }
}

fn empty(response: axum::http::response::Builder) -> Result<Response, Refusal> {
    response.body(Body::empty()).map_err(|_| Refusal::BAD_REQUEST)
}
