//! Programs that listen in a sandbox, for people with a browser: links to them, and the way there by path. With a domain each has a host name of its
//! own ([`crate::traffic`]); without one the path says which it is.

use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Json, Router};
use belljar_core::Session;
use belljar_http::{Forwarded, Peer, PortGrant, QueryOf, acting_for, forward, origin};
use belljar_types::{ProjectId, SandboxId, Scope, Timestamp};

use super::PREVIEW_PATH;
use super::find::{Found, find, number};
use super::sandboxes::Answer;
use crate::errors::ApiError;
use crate::state::DaytonaState;
use crate::traffic::{Shown, shown_in};
use crate::translate::Marks;

/// Seconds that a signed link is good for when nobody says.
const LINK_LIVES: u64 = 60;
/// A day: a link cannot be taken back.
const LONGEST_LINK: u64 = 86_400;
/// What opens a port for whoever may use the sandbox lives as long as that, and not for ever.
const TOKEN_LIVES: Duration = Duration::from_secs(30 * 86_400);

/// What stands below [`PREVIEW_PATH`].
pub(super) fn router() -> Router<DaytonaState> {
    Router::new()
        .route("/{sandbox}/{port}", any(by_path))
        .route("/{sandbox}/{port}/", any(by_path))
        .route("/{sandbox}/{port}/{*path}", any(by_path))
        .fallback(|| async { ApiError::not_found("the path names no port of a sandbox") })
}

/// How long a link is to be good for.
#[derive(Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct LinkQuery {
    expires_in_seconds: Option<u64>,
}

pub(super) async fn link(
    State(state): State<DaytonaState>,
    found: Found,
    Path((_sandbox, port)): Path<(String, String)>,
    request: Request,
) -> Answer<Json<serde_json::Value>> {
    let port = number("port", &port)?;
    let token = token(&state, &found, port, TOKEN_LIVES)?;
    let url = address(&state, &found.sandbox.id, port, &request)?;
    Ok(Json(serde_json::json!({ "sandboxId": found.sandbox.id.to_string(), "url": url, "token": token })))
}

pub(super) async fn signed_link(
    State(state): State<DaytonaState>,
    found: Found,
    Path((_sandbox, port)): Path<(String, String)>,
    QueryOf(query): QueryOf<LinkQuery>,
    request: Request,
) -> Answer<Json<serde_json::Value>> {
    let port = number("port", &port)?;
    let seconds = query.expires_in_seconds.unwrap_or(LINK_LIVES);
    if !(1..=LONGEST_LINK).contains(&seconds) {
        return Err(ApiError::bad_request("expiresInSeconds must be between 1 second and 24 hours"));
    }
    let token = token(&state, &found, port, Duration::from_secs(seconds))?;
    let url = format!("{}?{}={token}", address(&state, &found.sandbox.id, port, &request)?, crate::traffic::PARAMETER);
    Ok(Json(serde_json::json!({ "sandboxId": found.sandbox.id.to_string(), "port": port, "token": token, "url": url })))
}

/// A token is worth as much as using the sandbox: whoever may only look at it gets none.
fn token(state: &DaytonaState, found: &Found, port: u16, lives: Duration) -> Answer<String> {
    found.who.require(Scope::Use)?;
    let grant = PortGrant { project: found.who.project.clone(), key: found.who.key.clone(), expires_at: Timestamp::now().plus(lives) };
    Ok(state.port_tokens.sign(&found.sandbox.id, port, &grant))
}

fn address(state: &DaytonaState, id: &SandboxId, port: u16, request: &Request) -> Answer<String> {
    let origin =
        origin(request.headers(), request.extensions(), request.uri()).ok_or_else(|| ApiError::bad_request("the request names no host"))?;
    let Some(domain) = &state.domain else { return Ok(format!("{origin}{PREVIEW_PATH}/{id}/{port}/")) };
    // The port that the client came in by is the one it gets through.
    let own_port = origin.rsplit_once(':').map(|(_, port)| port).filter(|port| port.bytes().all(|digit| digit.is_ascii_digit()));
    let own_port = own_port.map(|port| format!(":{port}")).unwrap_or_default();
    let scheme = if origin.starts_with("https") { "https" } else { "http" };
    Ok(format!("{scheme}://{port}-{id}.{domain}{own_port}/"))
}

async fn by_path(State(state): State<DaytonaState>, Path(parts): Path<Vec<(String, String)>>, request: Request) -> Response {
    let part = |name: &str| parts.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str());
    let (which, Ok(port)) = (part("sandbox"), part("port").parse::<u16>()) else {
        return ApiError::not_found("the path names no port of a sandbox").into_response();
    };
    // As the client wrote it, escapes included: what is decoded cannot be told apart again.
    let rest = request.uri().path().splitn(4, '/').nth(3).unwrap_or_default();
    let path = match request.uri().query() {
        Some(query) => format!("/{rest}?{query}"),
        None => format!("/{rest}"),
    };
    let prefix = format!("{PREVIEW_PATH}/{which}/{port}");
    let id = match which.parse::<SandboxId>() {
        Ok(id) => id,
        // A name is one project's: only a key says whose.
        Err(_) => match state.gate.admit(request.headers()).await {
            Ok(who) => match find(&state, &who, which).await {
                Ok(sandbox) => sandbox.id.clone(),
                Err(error) => return error.into_response(),
            },
            Err(problem) => return ApiError::from(problem).into_response(),
        },
    };
    to_program(&state, id, port, request, path, Some(prefix)).await.unwrap_or_else(IntoResponse::into_response)
}

/// Sends a request to a port, if it shows a key or a token for it, or if the sandbox's ports are public.
pub(crate) async fn to_program(
    state: &DaytonaState,
    id: SandboxId,
    port: u16,
    mut request: Request,
    path: String,
    prefix: Option<String>,
) -> Answer<Response> {
    belljar_http::about_sandbox(request.extensions(), &id);
    let secure = request.extensions().get::<Peer>().is_some_and(|peer| peer.tls);
    let (shown, path) = shown_in(request.headers_mut(), &path);
    // By path all sandboxes are one place to a browser: a page of one must not be let in at another by what the browser keeps.
    let cookie = if prefix.is_none() { shown.cookie(secure) } else { None };
    let (session, until) = match shown {
        Shown::Token(token) | Shown::InAddress(token) => {
            let refused = || ApiError::new(axum::http::StatusCode::UNAUTHORIZED, "the token is not for this port, or it has expired");
            let grant = state.port_tokens.verify(&id, port, &token).ok_or_else(refused)?;
            (open(state, &id, grant.project).await?, Some(grant.expires_at))
        }
        Shown::Nothing => match public(state, &id).await? {
            Some(session) => (session, None),
            None => {
                let who = state.gate.admit(request.headers()).await?;
                (state.service.open(&who, &id).await?, None)
            }
        },
    };
    let mut answer = forward(session, port, request, &path, &Forwarded { prefix, until }).await?;
    if let Some(cookie) = cookie {
        answer.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(answer)
}

async fn open(state: &DaytonaState, id: &SandboxId, project: ProjectId) -> Answer<Session> {
    Ok(state.service.open(&acting_for(project, Scope::Use), id).await?)
}

/// The sandbox, if anybody may reach its ports.
async fn public(state: &DaytonaState, id: &SandboxId) -> Answer<Option<Session>> {
    let Some(project) = state.known.project_of(id).await? else { return Err(ApiError::no_sandbox(id.as_str())) };
    let sandbox = state.service.sandbox(&acting_for(project.clone(), Scope::Read), id).await?;
    if !Marks::of(&sandbox.metadata).is_some_and(|marks| marks.public) {
        return Ok(None);
    }
    open(state, id, project).await.map(Some)
}
