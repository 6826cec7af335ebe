//! The daemon's paths, for requests that are known to be for one sandbox.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_core::Session;
use belljar_types::UserName;
use tower::ServiceExt as _;

use super::{download, filesystem, input, process, upload, watch, watchers};
use crate::errors::{ApiError, RpcError};
use crate::state::E2bState;

/// What a client has shown for being let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// The right token, or none is wanted.
    Right,
    /// A wrong one.
    Wrong,
    /// None, where one is wanted.
    Nothing,
}

/// One sandbox, and whether its daemon is open to the client.
pub(crate) struct Inside {
    pub(crate) session: Session,
    pub(crate) shown: Shown,
}

/// All of the daemon's routes.
#[derive(Clone)]
pub(crate) struct Daemon(Router);

impl Daemon {
    pub(crate) fn new(state: &E2bState) -> Self {
        let processes = Router::new()
            .route("/process.Process/Start", post(process::start))
            .route("/process.Process/Connect", post(process::connect))
            .route("/process.Process/List", post(process::list))
            .route("/process.Process/SendInput", post(input::send))
            .route("/process.Process/StreamInput", post(input::stream))
            .route("/process.Process/CloseStdin", post(input::close))
            .route("/process.Process/SendSignal", post(process::signal))
            .route("/process.Process/Update", post(process::update));
        let files = Router::new()
            .route("/filesystem.Filesystem/Stat", post(filesystem::stat))
            .route("/filesystem.Filesystem/MakeDir", post(filesystem::make_directory))
            .route("/filesystem.Filesystem/Move", post(filesystem::rename))
            .route("/filesystem.Filesystem/ListDir", post(filesystem::list))
            .route("/filesystem.Filesystem/Remove", post(filesystem::remove))
            .route("/filesystem.Filesystem/WatchDir", post(watch::stream))
            .route("/filesystem.Filesystem/CreateWatcher", post(watchers::create))
            .route("/filesystem.Filesystem/GetWatcherEvents", post(watchers::events))
            .route("/filesystem.Filesystem/RemoveWatcher", post(watchers::remove))
            .route("/files", get(download::read).post(upload::write));
        let rest = Router::new()
            .route("/health", get(|| async { StatusCode::NO_CONTENT }))
            .route("/envs", get(envs))
            .route("/metrics", get(metrics));
        Self(processes.merge(files).merge(rest).fallback(nothing_there).with_state(state.clone()))
    }

    /// Answers a request for this sandbox.
    pub(crate) async fn answer(&self, inside: Inside, mut request: Request) -> Response {
        if request.method() == Method::OPTIONS {
            return with_cors(StatusCode::NO_CONTENT.into_response());
        }
        // `/files` judges for itself: a signed link is as good as a token.
        let open = matches!(request.uri().path(), "/health" | "/files");
        if inside.shown != Shown::Right && !open {
            let message = "unauthorized access, please provide a valid access token or method signing if supported";
            return with_cors(ApiError::unauthorized(message).into_response());
        }
        request.extensions_mut().insert(Sandboxed(Arc::new(inside)));
        // A router refuses nothing by itself: this cannot fail.
        let Ok(answer) = self.0.clone().oneshot(request).await;
        with_cors(answer)
    }
}

/// Browsers may use a sandbox's daemon from any page that has its token.
pub(super) fn with_cors(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*, Authorization"));
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"));
    response
}

async fn nothing_there(request: Request) -> ApiError {
    let path = belljar_types::escape_untrusted(request.uri().path().as_bytes());
    ApiError::new(StatusCode::NOT_FOUND, format!("{path} is not reachable through the sandbox URL"))
}

async fn envs(Sandboxed(inside): Sandboxed) -> impl IntoResponse {
    let sandbox = inside.session.sandbox();
    let mut env = sandbox.spec.defaults.env.clone();
    env.extend(sandbox.spec.env.clone());
    env.extend(process::own_env(&sandbox));
    ([(header::CACHE_CONTROL, "no-store")], Json(env))
}

async fn metrics(Sandboxed(inside): Sandboxed) -> Result<Json<serde_json::Value>, RpcError> {
    let metrics = match inside.session.metrics().await {
        Ok(metrics) => metrics,
        Err(error) => return Err(RpcError::of_guest(&inside.session, None, error).await),
    };
    Ok(Json(serde_json::json!({
        "ts": jiff::Timestamp::now().as_second(),
        "cpu_count": metrics.cpus,
        "cpu_used_pct": 0.0,
        "mem_total": metrics.memory_total_bytes,
        "mem_used": metrics.memory_used_bytes,
        "mem_cache": 0,
        "disk_used": metrics.disk_used_bytes,
        "disk_total": metrics.disk_total_bytes,
    })))
}

/// The sandbox a request is for.
#[derive(Clone)]
pub(super) struct Sandboxed(pub(super) Arc<Inside>);

impl<S: Send + Sync> FromRequestParts<S> for Sandboxed {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| ApiError::bad_request("this is for a sandbox"))
    }
}

/// Who acts, from `Authorization: Basic base64("user:")`; the template's default when nobody is named.
pub(super) struct As(pub(super) Option<UserName>);

impl<S: Send + Sync> FromRequestParts<S> for As {
    type Rejection = RpcError;
    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, RpcError> {
        let basic = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Basic "));
        let Some(basic) = basic else { return Ok(Self(None)) };
        let pair = STANDARD.decode(basic.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let pair = pair.ok_or_else(|| RpcError::unknown_user(basic))?;
        let name = pair.split_once(':').map_or(pair.as_str(), |(name, _)| name);
        name.parse().map(|name| Self(Some(name))).map_err(|_| RpcError::unknown_user(name))
    }
}

/// The message of a call that is no stream.
pub(super) struct Message<T>(pub(super) T);

impl<T: serde::de::DeserializeOwned, S: Send + Sync> axum::extract::FromRequest<S> for Message<T> {
    type Rejection = Response;
    async fn from_request(request: Request, _state: &S) -> Result<Self, Response> {
        if !belljar_http::content_type_is(request.headers(), "application/json") {
            let accepted = [("accept-post", "application/json")];
            return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, accepted).into_response());
        }
        let bytes = belljar_http::read_limited(request.into_body(), crate::stream::LARGEST_MESSAGE).await;
        let bytes = bytes.map_err(|problem| ApiError::from(problem).into_response())?;
        let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        serde_json::from_slice(bytes).map(Self).map_err(|error| RpcError::invalid(format!("unmarshal message: {error}")).into_response())
    }
}
