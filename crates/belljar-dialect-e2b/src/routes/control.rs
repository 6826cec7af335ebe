//! The control plane's paths. Everything but the health check needs a key.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};

use super::{lists, metrics, pauses, sandboxes, templates, unsupported};
use crate::errors::ApiError;
use crate::state::E2bState;

pub(super) fn router(state: E2bState) -> Router {
    let sandboxes = Router::new()
        .route("/sandboxes", get(lists::running).post(sandboxes::create_v1))
        .route("/v2/sandboxes", get(lists::all).post(sandboxes::create_v2))
        .route("/sandboxes/{id}", get(sandboxes::show).delete(sandboxes::kill))
        .route("/sandboxes/{id}/connect", post(pauses::connect))
        .route("/v2/sandboxes/{id}/connect", post(pauses::connect))
        .route("/sandboxes/{id}/resume", post(pauses::resume))
        .route("/sandboxes/{id}/timeout", post(sandboxes::timeout))
        .route("/sandboxes/{id}/refreshes", post(sandboxes::refresh))
        .route("/sandboxes/{id}/network", put(sandboxes::network))
        .route("/sandboxes/{id}/metrics", get(metrics::one))
        .route("/sandboxes/metrics", get(metrics::many))
        .route("/sandboxes/{id}/logs", get(lists::logs))
        .route("/v2/sandboxes/{id}/logs", get(lists::logs))
        .route("/sandboxes/{id}/pause", post(pauses::pause))
        .route("/sandboxes/{id}/fork", post(unsupported::fork))
        .route("/sandboxes/{id}/snapshots", post(unsupported::snapshot));
    let templates = Router::new()
        .route("/templates", get(templates::list).post(unsupported::build))
        .route("/v2/templates", get(templates::list).post(unsupported::build))
        .route("/v3/templates", post(unsupported::build))
        .route("/templates/aliases/{alias}", get(templates::alias))
        .route("/templates/{id}", get(templates::show).delete(templates::remove).post(unsupported::build).patch(unsupported::build))
        .route("/v2/templates/{id}", axum::routing::patch(unsupported::build))
        .route("/templates/tags", post(unsupported::tags).delete(unsupported::tags))
        .route("/templates/{id}/tags", get(templates::tags));
    let rest = Router::new()
        .route("/snapshots", get(unsupported::snapshots))
        .route("/volumes", get(unsupported::volumes).post(unsupported::volumes))
        .route("/volumes/{id}", get(unsupported::volumes).delete(unsupported::volumes))
        .route("/secrets", get(unsupported::secrets).post(unsupported::secrets))
        .route("/secrets/{id}", get(unsupported::secrets).post(unsupported::secrets).delete(unsupported::secrets))
        .route("/teams", get(templates::teams));
    sandboxes
        .merge(templates)
        .merge(rest)
        .layer(from_fn_with_state(state.clone(), authenticate))
        .route("/health", get(|| async { StatusCode::NO_CONTENT }))
        .with_state(state)
}

async fn authenticate(State(state): State<E2bState>, mut request: Request, next: Next) -> Response {
    match state.gate.admit(request.headers()).await {
        Ok(who) => {
            request.extensions_mut().insert(who);
            next.run(request).await
        }
        Err(problem) => ApiError::from(problem).into_response(),
    }
}
