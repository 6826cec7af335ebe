//! What stands around every front: each request gets a name, a span and a line in the log, whatever fails becomes a problem, and host names of
//! sandboxes' ports are sent there before any route is looked at.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use belljar_core::{Service, in_the_name_of};
use belljar_types::{SandboxId, escape_untrusted};
use futures_util::FutureExt;
use tracing::Instrument;

use crate::access::{Account, Counted};
use crate::auth::Gate;
use crate::guest_log::GuestLog;
use crate::host_route::{PortHost, port_host};
use crate::leftover::see_to_the_rest;
use crate::metrics::Metrics;
use crate::port_token::PortTokens;
use crate::problem::Problem;
use crate::proxy::answer_for_port;
use crate::request_id::{self, RequestId};

/// The shared parts of a server's fronts.
pub struct Front {
    /// What does the work.
    pub service: Arc<Service>,
    /// Who may.
    pub gate: Arc<Gate>,
    /// Signs and checks port tokens.
    pub port_tokens: Arc<PortTokens>,
    /// Below this domain, `{port}-{id}` is a port of a sandbox; nowhere when unset.
    pub domain: Option<String>,
    /// The router looks at such host names itself, and gives back what is not its own ([`Front::answer_for_port`]).
    pub router_takes_ports: bool,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// Keeps what guests cause from filling the log.
    pub guest_log: GuestLog,
}

/// Which sandbox a request is about, told by its handler, so that the log can say it.
#[derive(Clone, Default)]
struct About(Arc<OnceLock<SandboxId>>);

/// Says which sandbox a request is about.
pub fn about_sandbox(extensions: &axum::http::Extensions, id: &SandboxId) {
    tracing::Span::current().record("sandbox", id.as_str());
    if let Some(About(cell)) = extensions.get::<About>() {
        // Told twice, it is the same sandbox.
        let _ = cell.set(id.clone());
    }
}

impl Front {
    /// Puts the shared parts around a router.
    pub fn around(self: Arc<Self>, router: Router) -> Router {
        self.around_with(router, |router| router)
    }

    /// The same, with something in between that sees every request before it is known whether there is a route for it.
    pub fn around_with(self: Arc<Self>, router: Router, between: impl FnOnce(Router) -> Router) -> Router {
        let router = between(router.fallback(no_route).method_not_allowed_fallback(wrong_method));
        router.layer(from_fn_with_state(self, frame)).layer(from_fn(see_to_the_rest))
    }

    async fn answer(self: Arc<Self>, request: Request, next: Next) -> Response {
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        let host = host.or_else(|| request.uri().authority().map(axum::http::uri::Authority::as_str));
        let port = self.domain.as_deref().zip(host).and_then(|(domain, host)| port_host(host, domain));
        match port {
            Some(port) if !self.router_takes_ports => self.answer_for_port(&port, request).await,
            _ => next.run(request).await,
        }
    }

    /// Answers a request that came in under a port's own host name, if it shows a key or a token for it.
    pub async fn answer_for_port(&self, port: &PortHost, request: Request) -> Response {
        about_sandbox(request.extensions(), &port.sandbox);
        answer_for_port(self, port, request).await.unwrap_or_else(IntoResponse::into_response)
    }

    /// Logs a problem once, where it is known whose it was.
    fn log(&self, problem: &Problem, about: Option<&SandboxId>) {
        let causes = escape_untrusted(problem.causes().as_bytes());
        let (code, detail) = (problem.code(), escape_untrusted(problem.detail().as_bytes()));
        let by_guest = code.starts_with("guest_") || code == "port_closed";
        if by_guest && about.is_some_and(|sandbox| !self.guest_log.may_say(sandbox)) {
            return;
        }
        if problem.status().is_server_error() && !by_guest && code != "busy" {
            tracing::error!(code, detail, causes, "a request failed");
        } else if !causes.is_empty() {
            tracing::warn!(code, detail, causes, "a request was not done");
        } else {
            tracing::debug!(code, detail, "a request was refused");
        }
    }
}

async fn frame(State(front): State<Arc<Front>>, mut request: Request, next: Next) -> Response {
    let id = RequestId::of(request.headers());
    let about = About::default();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
    let empty = tracing::field::Empty;
    let span = tracing::info_span!(
        "request",
        request_id = id.as_str(),
        method = method.as_str(),
        route,
        sandbox = empty,
        project = empty,
        key = empty
    );
    request.extensions_mut().insert(id.clone());
    request.extensions_mut().insert(about.clone());
    let mut account = Account::open(span.clone(), Arc::clone(&front.metrics));
    let answer = AssertUnwindSafe(in_the_name_of(id.as_str(), Arc::clone(&front).answer(request, next)));
    let answer = answer.catch_unwind().instrument(span.clone());
    let mut response = answer.await.unwrap_or_else(|_| {
        let detail = "something in the server broke; its log has more under this request id";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail).into_response()
    });
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        span.in_scope(|| front.log(&problem, about.0.get()));
        // The length is of the body that does not know its request yet.
        response.headers_mut().remove(header::CONTENT_LENGTH);
        *response.body_mut() = problem.json(Some(id.as_str())).into();
    }
    response.headers_mut().insert(request_id::HEADER, id.header());
    account.answered(known(&method), route, response.status().as_u16());
    response.map(|body| Body::new(Counted { body, account }))
}

/// A method as a label: a client may invent methods, but not labels.
fn known(method: &Method) -> &str {
    match method.as_str() {
        known @ ("GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS" | "CONNECT" | "TRACE") => known,
        _ => "other",
    }
}

async fn no_route(uri: Uri) -> Problem {
    let detail = format!("there is nothing at {}; GET /v1/openapi.json lists what there is", escape_untrusted(uri.path().as_bytes()));
    Problem::new(StatusCode::NOT_FOUND, "no_route", detail)
}

async fn wrong_method(method: Method, uri: Uri) -> Problem {
    let (method, path) = (escape_untrusted(method.as_str().as_bytes()), escape_untrusted(uri.path().as_bytes()));
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", format!("{path} does not take {method}; see the Allow header"))
}
