//! Tools over HTTP, for agents that run elsewhere: an address is a computer. This program has no key of its own; each request brings its own, and reaches
//! what that one may.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use belljar_client::{Client, CreateSandbox};
use belljar_http::{Listen, Metrics, Problem, ServeLimits, Server, TlsFiles, presented_key, unauthorized};
use belljar_mcp::{ComputerName, Computers, Visitor};
use belljar_types::Secret;
use tokio_util::sync::CancellationToken;

use crate::command_error::CommandError;
use crate::screen;
use crate::units;

const PATH: &str = "/mcp";

/// Where requests come in, and how long what they use stays.
#[derive(clap::Args, Debug, Clone)]
pub(super) struct Listening {
    /// Serve agents over HTTP here instead of one on standard input, as in 127.0.0.1:7071
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["sandbox", "key_file"], help_heading = "Over HTTP")]
    pub(super) listen: Option<SocketAddr>,
    /// How long a computer stays although nobody uses it
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration, default_value = "30m", requires = "listen", help_heading = "Over HTTP")]
    idle: Duration,
    /// Pause a computer that nobody uses instead of ending it; the next request lets it go on
    #[arg(long, requires = "listen", help_heading = "Over HTTP")]
    pause_when_idle: bool,
    /// Certificate chain (PEM) to listen with; needed where others can reach the address
    #[arg(long, value_name = "FILE", requires_all = ["listen", "tls_key"], help_heading = "Over HTTP")]
    tls_certificate: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_certificate", help_heading = "Over HTTP")]
    tls_key: Option<PathBuf>,
    /// A proxy in front does TLS, and nobody else can reach the address
    #[arg(long, requires = "listen", help_heading = "Over HTTP")]
    behind_proxy: bool,
}

/// Serves until `stop`.
pub(super) async fn serve(
    client: Client,
    mut like: CreateSandbox,
    address: SocketAddr,
    listening: Listening,
    stop: impl Future<Output = ()>,
) -> Result<(), CommandError> {
    if listening.pause_when_idle {
        like.on_timeout = Some("pause".to_owned());
        like.auto_resume = true;
    }
    let computers = Computers { like: Box::new(like), idle: listening.idle };
    let tls = listening.tls_certificate.zip(listening.tls_key).map(|(certificates, key)| TlsFiles { certificates, key });
    let scheme = if tls.is_some() { "https" } else { "http" };
    let server = Server::bind(&[Listen { address, tls, behind_proxy: listening.behind_proxy }], ServeLimits::default()).await?;
    for address in server.addresses() {
        screen::line(&format!("{scheme}://{address}{PATH}"))?;
    }
    screen::remark(&format!("belljar: {PATH}/NAME is the computer of that name; a request shows its key as `Authorization: Bearer bj_…`"));
    let ended = CancellationToken::new();
    let door = belljar_mcp::door(computers, ended.clone());
    let router = Router::new()
        .route_service(PATH, door.clone())
        .route_service("/mcp/{computer}", door)
        .route_layer(from_fn_with_state(client, introduce))
        .route("/healthz", get(|| async { StatusCode::NO_CONTENT }));
    let serving = server.serve(router, Arc::new(Metrics::default()), ended.clone());
    tokio::join!(serving, async {
        stop.await;
        ended.cancel();
    });
    Ok(())
}

/// Finds out who asks, and for which computer.
async fn introduce(State(client): State<Client>, mut request: Request, next: Next) -> Response {
    match visitor(&client, &request) {
        Ok(visitor) => {
            request.extensions_mut().insert(visitor);
            next.run(request).await
        }
        Err(problem) => {
            let mut answer = problem.into_response();
            if answer.status() == StatusCode::UNAUTHORIZED {
                answer.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            answer
        }
    }
}

fn visitor(client: &Client, request: &Request) -> Result<Visitor, Problem> {
    let key = presented_key(request.headers());
    let key = key.ok_or_else(|| unauthorized("this needs an API key of a Belljar server: send it as `Authorization: Bearer bj_…`"))?;
    let client = client.for_key(&Secret::new(key.to_owned())).map_err(|_| unauthorized("no API key has such characters"))?;
    let below = request.uri().path().strip_prefix(PATH).unwrap_or_default();
    let computer = match below.strip_prefix('/').unwrap_or_default() {
        "" => ComputerName::main(),
        name => name.parse().map_err(|error: belljar_types::Invalid| Problem::invalid("computer", error.to_string()))?,
    };
    Ok(Visitor { client, computer })
}
