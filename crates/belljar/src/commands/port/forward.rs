//! A port of this machine that leads to a program in a sandbox: every request is passed on as it is, and so is every answer.

use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use belljar_client::{Body, Client, ClientError, Reached};
use belljar_types::SandboxId;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;

use crate::command_error::{CommandError, told};
use crate::screen;

/// What belongs to one connection and not to the request (RFC 9110, 7.6.1).
const OF_THE_CONNECTION: [HeaderName; 6] =
    [header::CONNECTION, header::PROXY_AUTHORIZATION, header::TE, header::TRAILER, header::TRANSFER_ENCODING, header::UPGRADE];

struct Way {
    client: Client,
    sandbox: SandboxId,
    port: u16,
}

/// Forwards until the program is ended.
pub(super) async fn run(client: Client, sandbox: SandboxId, port: u16, local: Option<u16>, json: bool) -> Result<(), CommandError> {
    let failed = |source| CommandError::Here { operation: "listen on 127.0.0.1", source };
    let listener = match local {
        Some(local) => TcpListener::bind((Ipv4Addr::LOCALHOST, local)).await.map_err(failed)?,
        None => match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
            Ok(listener) => listener,
            Err(_taken) => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?,
        },
    };
    let url = format!("http://{}", listener.local_addr().map_err(failed)?);
    if json {
        screen::json_line(&json!({ "url": url, "sandbox": sandbox, "port": port }))?;
    } else {
        screen::line(&url)?;
    }
    let router = Router::new().fallback(pass_on).with_state(Arc::new(Way { client, sandbox, port }));
    axum::serve(listener, router).await.map_err(failed)
}

async fn pass_on(State(way): State<Arc<Way>>, mut request: Request) -> Response {
    let wanted = request.headers().get(header::UPGRADE).cloned();
    let here = wanted.as_ref().map(|_| hyper::upgrade::on(&mut request));
    let (parts, body) = request.into_parts();
    let mut headers = without_connection(&parts.headers);
    if let Some(protocol) = wanted {
        headers.insert(header::CONNECTION, header::HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, protocol);
    }
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let has_body = parts.headers.contains_key(header::CONTENT_LENGTH) || parts.headers.contains_key(header::TRANSFER_ENCODING);
    let body = if has_body { Body::wrap_stream(body.into_data_stream()) } else { Body::from("") };
    match way.client.reach(&way.sandbox, way.port, parts.method, target, headers, body).await {
        Ok(reached) if reached.status() == StatusCode::SWITCHING_PROTOCOLS => switched(reached, here),
        Ok(reached) => {
            let (status, headers) = (reached.status(), without_connection(reached.headers()));
            (status, headers, axum::body::Body::from_stream(reached.pieces())).into_response()
        }
        Err(error) => unreachable_program(&error),
    }
}

/// Joins the two connections once both sides have changed the protocol.
fn switched(reached: Reached, here: Option<hyper::upgrade::OnUpgrade>) -> Response {
    let headers = reached.headers().clone();
    tokio::spawn(async move {
        let Some(here) = here else { return };
        if let (Ok(here), Ok(mut there)) = tokio::join!(here, reached.upgrade()) {
            // Either side may cut the line at any time; that is its end.
            let _ = tokio::io::copy_bidirectional(&mut TokioIo::new(here), &mut there).await;
        }
    });
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

fn without_connection(headers: &HeaderMap) -> HeaderMap {
    let mut kept = headers.clone();
    for name in &OF_THE_CONNECTION {
        kept.remove(name);
    }
    kept
}

fn unreachable_program(error: &ClientError) -> Response {
    let status = if matches!(error, ClientError::LeadsOut { .. }) { StatusCode::BAD_REQUEST } else { StatusCode::BAD_GATEWAY };
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], format!("belljar: {}\n", told(error))).into_response()
}
