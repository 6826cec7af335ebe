//! Which requests belong to a sandbox, told by headers or by host name, and the way there.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use belljar_core::{CoreError, Session};
use belljar_http::{Forwarded, PortHost, forward, port_host};
use belljar_interpreter::Interpreter;
use belljar_types::{ProjectId, SandboxId, SandboxState, Scope};

use crate::errors::{ApiError, bad_target, port_closed, sandbox_gone};
use crate::routes::{Daemon, Inside, Shown, Signed, answer_interpreter};
use crate::state::E2bState;
use crate::translate::Marks;
use belljar_http::acting_for;

/// The port of E2B's daemon. Nothing listens there in a sandbox: the host answers.
pub const ENVD_PORT: u16 = 49983;
/// The port of E2B's code interpreter. The host answers for sandboxes that have kernels; in others it is a port like any other.
const INTERPRETER_PORT: u16 = 49999;

const SANDBOX: HeaderName = HeaderName::from_static("e2b-sandbox-id");
const PORT: HeaderName = HeaderName::from_static("e2b-sandbox-port");
const DAEMON_TOKEN: HeaderName = HeaderName::from_static("x-access-token");
const TRAFFIC_TOKEN: HeaderName = HeaderName::from_static("e2b-traffic-access-token");

/// What a request is for: a port of a sandbox, or something that cannot be one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// This port of this sandbox.
    Port(SandboxId, u16),
    /// A sandbox whose name no sandbox can have.
    Nobody(String),
    /// Half an address.
    Unclear(&'static str),
}

impl Target {
    /// Of a request, if it is for a sandbox at all. `domain` is the one below which host names are ports.
    pub fn of(headers: &HeaderMap, uri: &Uri, domain: Option<&str>) -> Option<Self> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let host = host.or_else(|| uri.authority().map(axum::http::uri::Authority::as_str));
        if let Some(port) = domain.zip(host).and_then(|(domain, host)| port_host(host, domain)) {
            return Some(Self::Port(port.sandbox, port.port));
        }
        let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or_default());
        match (text(SANDBOX), text(PORT)) {
            (None, None) => None,
            (None, Some(_)) => Some(Self::Unclear("Missing header: E2b-Sandbox-Id")),
            (Some(_), None) => Some(Self::Unclear("Missing header: E2b-Sandbox-Port")),
            (Some(id), Some(port)) => Some(match (id.split('-').next().unwrap_or(id).parse(), port.parse()) {
                (_, Err(_)) => Self::Unclear("Invalid sandbox port"),
                (Err(_), Ok(_)) => Self::Nobody(id.to_owned()),
                (Ok(id), Ok(port)) => Self::Port(id, port),
            }),
        }
    }
}

/// The middleware around all routes: sends what belongs to a sandbox there.
pub(crate) async fn attend(State((state, daemon)): State<(E2bState, Daemon)>, request: Request, next: Next) -> Response {
    match Target::of(request.headers(), request.uri(), state.domain.as_deref()) {
        Some(Target::Port(id, ENVD_PORT)) => to_daemon(&state, &daemon, id, request).await,
        Some(Target::Port(id, port)) => to_program(&state, id, port, request).await,
        Some(Target::Nobody(id)) => sandbox_gone(&id),
        Some(Target::Unclear(why)) => bad_target(why),
        None => match Signed::of(request.uri()) {
            // A signed link names no sandbox when there is one address for all: whose signature it is says which.
            Some(signed) if request.uri().path() == "/files" => match signed.find(&state, request.method()) {
                Some(id) => to_daemon(&state, &daemon, id, request).await,
                None => ApiError::unauthorized("invalid signature").into_response(),
            },
            _ => next.run(request).await,
        },
    }
}

async fn to_daemon(state: &E2bState, daemon: &Daemon, id: SandboxId, request: Request) -> Response {
    belljar_http::about_sandbox(request.extensions(), &id);
    let token = request.headers().get(DAEMON_TOKEN).map(|token| token.to_str().unwrap_or_default().to_owned());
    let by_token = token.as_ref().and_then(|token| state.tokens.check_daemon(&id, token));
    let has_token = by_token.is_some();
    // Whoever asks how a sandbox is must not wake it.
    if request.uri().path() == "/health"
        && let Some(answer) = asleep(state, &id, by_token.clone()).await
    {
        return answer;
    }
    let session = match open(state, &id, by_token).await {
        Ok(session) => session,
        Err(answer) => return answer,
    };
    let secure = Marks::of(&session.sandbox().metadata).secure;
    let shown = match (has_token, token) {
        (true, _) => Shown::Right,
        (false, Some(_)) if secure => Shown::Wrong,
        _ if !secure => Shown::Right,
        _ => Shown::Nothing,
    };
    daemon.answer(Inside { session, shown }, request).await
}

/// What to say of a sandbox that is paused; nothing of one that runs.
async fn asleep(state: &E2bState, id: &SandboxId, project: Option<ProjectId>) -> Option<Response> {
    let project = match project {
        Some(project) => project,
        None => state.known.project_of(id).await.ok()??,
    };
    let sandbox = state.service.sandbox(&acting_for(project, Scope::Read), id).await.ok()?;
    matches!(sandbox.state, SandboxState::Pausing | SandboxState::Paused | SandboxState::Resuming).then(|| sandbox_gone(id.as_str()))
}

async fn to_program(state: &E2bState, id: SandboxId, port: u16, mut request: Request) -> Response {
    belljar_http::about_sandbox(request.extensions(), &id);
    let token = request.headers_mut().remove(TRAFFIC_TOKEN);
    // What opens the daemon is not for programs.
    let daemon_token = request.headers_mut().remove(DAEMON_TOKEN);
    let by_token = token.as_ref().and_then(|token| state.tokens.check_traffic(&id, token.to_str().ok()?));
    let allowed = by_token.is_some();
    let session = match open(state, &id, by_token).await {
        Ok(session) => session,
        Err(answer) => return answer,
    };
    let marks = Marks::of(&session.sandbox().metadata);
    if !allowed && !marks.public_ports {
        return without_traffic_token(state, &session, PortHost { sandbox: id, port }, token.is_some(), request).await;
    }
    if port == INTERPRETER_PORT && Interpreter::new(session.clone()).is_installed().await.unwrap_or(false) {
        let wrong = |token: &HeaderValue| token.to_str().ok().and_then(|token| state.tokens.check_daemon(&id, token)).is_none();
        if marks.secure && daemon_token.as_ref().is_some_and(wrong) {
            return ApiError::unauthorized("invalid access token").into_response();
        }
        return answer_interpreter(session, request).await;
    }
    let host = marks.program_host.and_then(|host| HeaderValue::try_from(host.replace("${PORT}", &port.to_string())).ok());
    if let Some(host) = host {
        request.headers_mut().insert(header::HOST, host);
    }
    let path = request.uri().path_and_query().map_or("/", axum::http::uri::PathAndQuery::as_str).to_owned();
    match forward(session, port, request, &path, &Forwarded::default()).await {
        Ok(answer) => answer,
        Err(problem) => match problem.code() {
            "port_closed" => port_closed(id.as_str(), port),
            "sandbox_ended" | "sandbox_not_found" => sandbox_gone(id.as_str()),
            _ => problem.into_response(),
        },
    }
}

/// A port that is not public. Another front's keys and tokens open it under its host name; all others hear E2B's own words.
async fn without_traffic_token(state: &E2bState, session: &Session, port: PortHost, wrong: bool, request: Request) -> Response {
    let by_host = !request.headers().contains_key(SANDBOX);
    let made_here = Marks::are_in(&session.sandbox().metadata);
    if by_host && !wrong {
        let answer = state.front.answer_for_port(&port, request).await;
        if !(made_here && answer.status() == StatusCode::UNAUTHORIZED) {
            return answer;
        }
    }
    let message = if wrong { "Invalid traffic access token" } else { "Missing traffic access token" };
    ApiError::new(StatusCode::FORBIDDEN, message).into_response()
}

/// The sandbox's agent, for whoever may reach it at all; what they may do there is for others to say.
async fn open(state: &E2bState, id: &SandboxId, project: Option<ProjectId>) -> Result<Session, Response> {
    let failed = |error: CoreError| match error {
        CoreError::NoSandbox { .. } | CoreError::Ended { .. } | CoreError::WrongState { .. } => {
            state.known.forget(id);
            sandbox_gone(id.as_str())
        }
        other => ApiError::from(other).into_response(),
    };
    let project = match project {
        Some(project) => project,
        None => state.known.project_of(id).await.map_err(failed)?.ok_or_else(|| sandbox_gone(id.as_str()))?,
    };
    let session = state.service.open(&acting_for(project.clone(), Scope::Use), id).await.map_err(failed)?;
    state.known.note(id, &project);
    Ok(session)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(headers: &[(&'static str, &str)]) -> Option<Target> {
        let headers = headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect();
        Target::of(&headers, &"/files".parse().unwrap(), Some("boxes.example"))
    }

    #[test]
    fn a_sandbox_is_named_by_headers_or_by_host() {
        let id: SandboxId = "sabcdefghijkmnpqrstu".parse().unwrap();
        let port = |port| Some(Target::Port(id.clone(), port));
        assert_eq!(target(&[("e2b-sandbox-id", id.as_str()), ("e2b-sandbox-port", "49983")]), port(49983));
        assert_eq!(target(&[("e2b-sandbox-id", &format!("{id}-belljar")), ("e2b-sandbox-port", "80")]), port(80));
        assert_eq!(target(&[("host", &format!("3000-{id}.boxes.example:8443"))]), port(3000));
        assert_eq!(target(&[("host", "boxes.example")]), None);
        assert_eq!(target(&[]), None);
    }

    #[test]
    fn what_names_no_sandbox_is_told_apart_from_what_is_no_address() {
        assert_eq!(target(&[("e2b-sandbox-id", "nope"), ("e2b-sandbox-port", "80")]), Some(Target::Nobody("nope".to_owned())));
        for headers in
            [&[("e2b-sandbox-id", "nope")] as &[_], &[("e2b-sandbox-port", "80")], &[("e2b-sandbox-id", "a"), ("e2b-sandbox-port", "x")]]
        {
            assert!(matches!(target(headers), Some(Target::Unclear(_))), "{headers:?}");
        }
    }
}
