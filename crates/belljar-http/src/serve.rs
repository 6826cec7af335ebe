//! Sockets. HTTP/1.1 and HTTP/2 on the same port, a bound on connections, headers and idle waits, and an end that lets answers finish.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, Version};
use axum::response::{IntoResponse as _, Response};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use rustix::net::sockopt::set_tcp_congestion;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::Service as _;

use crate::flushes::{Counted, Flushes};
use crate::hangup::{Hangup, Resettable};
use crate::listen::{Listen, ListenError, check_listen};
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::tls;

const PREDECESSOR_TRIES: u32 = 20;
const PREDECESSOR_PAUSE: Duration = Duration::from_millis(100);

/// Who is at the other end; in every request's extensions.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// Its address, or that of the proxy in front.
    pub address: SocketAddr,
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// Whether a proxy in front is trusted to say who it was.
    pub behind_proxy: bool,
}

/// What one client may cost before it has shown a key.
#[derive(Debug, Clone, Copy)]
pub struct ServeLimits {
    /// Connections at one time, over all listeners.
    pub connections: usize,
    /// Headers of a request.
    pub headers: usize,
    /// Their bytes.
    pub header_bytes: usize,
    /// How long a request's head may take to come, and a connection may idle between two.
    pub header_timeout: Duration,
    /// How long answers may take to finish once the server is told to stop.
    pub drain: Duration,
}

impl Default for ServeLimits {
    fn default() -> Self {
        let header_timeout = Duration::from_secs(30);
        Self { connections: 4096, headers: 100, header_bytes: 64 << 10, header_timeout, drain: Duration::from_secs(20) }
    }
}

/// A body is read in pieces of up to this size: each costs several changes of threads on its way into a sandbox.
const READ_AT_ONCE: usize = 256 << 10;

/// Nobody else is on a way that does not leave the machine, but where BBR is the system's choice, files would be sent there at a pace too.
const UNPACED: &str = "reno";

struct Bound {
    socket: TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    behind_proxy: bool,
}

/// Listeners that are open and not yet served.
pub struct Server {
    bound: Vec<Bound>,
    limits: ServeLimits,
}

impl Server {
    /// Opens all listeners, or none.
    pub async fn bind(listens: &[Listen], limits: ServeLimits) -> Result<Self, ListenError> {
        let mut bound = Vec::new();
        for listen in listens {
            check_listen(listen)?;
            let tls = listen.tls.as_ref().map(tls::acceptor).transpose()?;
            let failed = |source: io::Error| match source.kind() {
                io::ErrorKind::AddrInUse => ListenError::Taken { address: listen.address },
                _ => ListenError::Bind { address: listen.address, source },
            };
            let socket = take(listen.address).await.map_err(failed)?;
            let address = socket.local_addr().map_err(failed)?;
            bound.push(Bound { socket, address, tls, behind_proxy: listen.behind_proxy });
        }
        Ok(Self { bound, limits })
    }

    /// Where it listens, with the ports that were given for port 0.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.bound.iter().map(|bound| bound.address).collect()
    }

    /// Answers until told to stop, then lets answers finish for a while.
    pub async fn serve(self, router: Router, metrics: Arc<Metrics>, stop: CancellationToken) {
        let places = Arc::new(Semaphore::new(self.limits.connections));
        let graceful = GracefulShutdown::new();
        let doors = self.bound.into_iter().map(|bound| {
            Door { bound, router: router.clone(), limits: self.limits, places: Arc::clone(&places), metrics: Arc::clone(&metrics) }
                .attend(&graceful, &stop)
        });
        futures_util::future::join_all(doors).await;
        if tokio::time::timeout(self.limits.drain, graceful.shutdown()).await.is_err() {
            tracing::warn!("some answers did not end in time; their connections are closed");
        }
    }
}

/// Takes an address. What a killed server was about to start holds on to its address for a moment longer than itself: that is waited for.
async fn take(address: SocketAddr) -> io::Result<TcpListener> {
    for _ in 0..PREDECESSOR_TRIES {
        match TcpListener::bind(address).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => tokio::time::sleep(PREDECESSOR_PAUSE).await,
            other => return other,
        }
    }
    TcpListener::bind(address).await
}

struct Door {
    bound: Bound,
    router: Router,
    limits: ServeLimits,
    places: Arc<Semaphore>,
    metrics: Arc<Metrics>,
}

impl Door {
    async fn attend(self, graceful: &GracefulShutdown, stop: &CancellationToken) {
        let builder = Arc::new(self.builder());
        loop {
            let accepted = tokio::select! {
                accepted = self.bound.socket.accept() => accepted,
                () = stop.cancelled() => return,
            };
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, mostly: what is open goes on, and closes some.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
                self.metrics.refused_connection();
                if self.bound.tls.is_none() {
                    refuse(&stream);
                }
                continue;
            };
            // Small answers must not wait for more; a socket that refuses this is closing anyway.
            let _ = stream.set_nodelay(true);
            if address.ip().to_canonical().is_loopback() {
                let _ = set_tcp_congestion(&stream, UNPACED);
            }
            let peer = Peer { address, tls: self.bound.tls.is_some(), behind_proxy: self.bound.behind_proxy };
            let hangup = Hangup::default();
            let stream = Resettable::new(stream, hangup.clone());
            let talk = Talk {
                hangup,
                router: self.router.clone(),
                builder: Arc::clone(&builder),
                peer,
                timeout: self.limits.header_timeout,
                header_bytes: self.limits.header_bytes,
                _place: place,
            };
            let watcher = graceful.watcher();
            match self.bound.tls.clone() {
                None => tokio::spawn(talk.over(stream, watcher)),
                Some(acceptor) => tokio::spawn(async move {
                    if let Ok(Ok(stream)) = tokio::time::timeout(talk.timeout, acceptor.accept(stream)).await {
                        talk.over(stream, watcher).await;
                    }
                }),
            };
        }
    }

    fn builder(&self) -> auto::Builder<TokioExecutor> {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        let header_list = u32::try_from(self.limits.header_bytes).unwrap_or(u32::MAX);
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.header_timeout)
            .max_headers(self.limits.headers)
            .max_buf_size(self.limits.header_bytes.max(READ_AT_ONCE));
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_header_list_size(header_list)
            .max_concurrent_streams(256)
            .keep_alive_interval(self.limits.header_timeout)
            .keep_alive_timeout(self.limits.header_timeout);
        builder
    }
}

struct Talk {
    hangup: Hangup,
    router: Router,
    builder: Arc<auto::Builder<TokioExecutor>>,
    peer: Peer,
    timeout: Duration,
    header_bytes: usize,
    _place: OwnedSemaphorePermit,
}

impl Talk {
    async fn over(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, watcher: hyper_util::server::graceful::Watcher) {
        let spoke = Arc::new(AtomicBool::new(false));
        let flushes = Flushes::default();
        let stream = Counted::new(stream, flushes.clone());
        let service = {
            let (spoke, router, peer, hangup, most) = (Arc::clone(&spoke), self.router.clone(), self.peer, self.hangup, self.header_bytes);
            hyper::service::service_fn(move |mut request: axum::http::Request<Incoming>| {
                spoke.store(true, Ordering::Relaxed);
                request.extensions_mut().insert(peer);
                request.extensions_mut().insert(flushes.clone());
                if request.version() <= Version::HTTP_11 {
                    request.extensions_mut().insert(hangup.clone());
                }
                let mut router = router.clone();
                async move {
                    if head_bytes(&request) > most {
                        return Ok(too_large_a_head(most));
                    }
                    router.call(request).await
                }
            })
        };
        let connection = watcher.watch(self.builder.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned());
        tokio::pin!(connection);
        // While the version of HTTP is being guessed, hyper has no time-out of its own.
        let silent = tokio::select! {
            ended = connection.as_mut() => return trace_end(ended),
            () = tokio::time::sleep(self.timeout) => !spoke.load(Ordering::Relaxed),
        };
        if !silent {
            trace_end(connection.await);
        }
    }
}

/// What a request says before its body.
fn head_bytes(request: &axum::http::Request<Incoming>) -> usize {
    let uri = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    uri + request.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum::<usize>()
}

fn too_large_a_head(most: usize) -> Response {
    let detail = format!("the request's address and headers have more than the {most} bytes that are taken");
    Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "too_large", detail).into_response()
}

fn trace_end(ended: Result<(), Box<dyn std::error::Error + Send + Sync>>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended badly");
    }
}

/// Turns a connection away in words, as far as they fit into the socket at once.
fn refuse(stream: &TcpStream) {
    let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "the server has as many connections as it takes; try again soon")
        .retry_after(Duration::from_secs(1));
    let body = serde_json::to_string(&problem.body(None)).unwrap_or_default();
    let text = format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    // The socket is new and its buffer empty; if it takes less, the client has gone.
    let _ = stream.try_write(text.as_bytes());
}
