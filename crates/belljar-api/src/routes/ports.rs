//! Programs that listen in a sandbox: which there are, how they are reached, and who else may.

use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::Response;
use belljar_http::{Forwarded, OptionalJson, PortGrant, Problem, forward};
use belljar_types::{Invalid, Timestamp};

use crate::dto::{PortList, PortTokenRequest, PortTokenView};
use crate::errors::Problems;
use crate::extract::{Opened, Port};
use crate::state::ApiState;
use crate::translate;

/// A week: a token cannot be taken back.
const LONGEST_TOKEN: u64 = 7 * 86_400;

/// List the ports that programs listen on.
#[utoipa::path(
    get, path = "/v1/sandboxes/{id}/ports", tag = "ports", operation_id = "listPorts",
    params(("id" = String, Path, description = "The sandbox")),
    responses((status = 200, description = "The ports.", body = PortList), Problems)
)]
pub(crate) async fn list(sandbox: Opened) -> Result<Json<PortList>, Problem> {
    let ports = sandbox.ask(sandbox.session.ports()).await?;
    Ok(Json(PortList { ports: ports.iter().map(translate::port_view).collect() }))
}

/// Make a token for one port.
///
/// Whoever has it reaches that port under its host name, without a key, until it expires. It cannot be taken back before.
#[utoipa::path(
    post, path = "/v1/sandboxes/{id}/ports/{port}/token", tag = "ports", operation_id = "makePortToken",
    params(("id" = String, Path, description = "The sandbox"), ("port" = u16, Path, description = "The port", minimum = 1, example = 8000)),
    request_body = PortTokenRequest,
    responses((status = 200, description = "The token.", body = PortTokenView), Problems)
)]
pub(crate) async fn token(
    State(state): State<ApiState>,
    sandbox: Opened,
    Port(number): Port,
    OptionalJson(request): OptionalJson<PortTokenRequest>,
) -> Result<Json<PortTokenView>, Problem> {
    let seconds = request.expires_in_seconds.unwrap_or(3600);
    if !(1..=LONGEST_TOKEN).contains(&seconds) {
        return Err(Invalid::new("expires_in_seconds", format!("1 to {LONGEST_TOKEN}"), seconds.to_string()).into());
    }
    let expires_at = Timestamp::now().plus(Duration::from_secs(seconds));
    let grant = PortGrant { project: sandbox.caller.project.clone(), key: sandbox.caller.key.clone(), expires_at };
    Ok(Json(PortTokenView {
        token: state.port_tokens.sign(&sandbox.id, number, &grant),
        expires_at: translate::moment(expires_at),
        host: state.domain.as_ref().map(|domain| format!("{number}-{}.{domain}", sandbox.id)),
    }))
}

/// Reach a program by path.
///
/// Any method, WebSocket included. The program sees what follows `proxy`; `X-Forwarded-Prefix` has what came before. Programs that make links from the root need
/// the host name instead: `{port}-{id}.{domain}`.
#[utoipa::path(
    method(get, head, post, put, patch, delete, options, trace), path = "/v1/sandboxes/{id}/ports/{port}/proxy/{path}", tag = "ports", operation_id = "reachPort",
    params(
        ("id" = String, Path, description = "The sandbox"), ("port" = u16, Path, description = "The port", minimum = 1, example = 8000),
        ("path" = String, Path, description = "What the program is asked for; may hold slashes", example = "index.html")
    ),
    responses((status = 200, description = "What the program answered, whatever its status."), Problems)
)]
pub(crate) async fn proxy(sandbox: Opened, Port(number): Port, request: Request) -> Result<Response, Problem> {
    let prefix = format!("/v1/sandboxes/{}/ports/{number}/proxy", sandbox.id);
    // As the client wrote it, escapes included: what is decoded cannot be told apart again.
    let mut path = format!("/{}", request.uri().path().splitn(8, '/').nth(7).unwrap_or_default());
    if let Some(query) = request.uri().query() {
        path.push('?');
        path.push_str(query);
    }
    forward(sandbox.session, number, request, &path, &Forwarded { prefix: Some(prefix), until: None }).await
}
