//! The control plane's paths. Everything but the health check needs a key, or a link that somebody with a key was given.

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};

use super::{
    build_files, builds, lists, metrics, pauses, sandboxes, secrets, snapshots, tags, templates, unsupported, volume_content, volumes,
};
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
        .route("/sandboxes/{id}/fork", post(snapshots::fork))
        .route("/sandboxes/{id}/snapshots", post(snapshots::take));
    let templates = Router::new()
        .route("/templates", get(templates::list).post(unsupported::dockerfile))
        .route("/v2/templates", get(templates::list).post(builds::request))
        .route("/v3/templates", post(builds::request))
        .route("/templates/aliases/{alias}", get(templates::alias))
        .route("/templates/{id}", get(templates::show).delete(templates::remove).post(builds::again).patch(templates::change))
        .route("/v2/templates/{id}", axum::routing::patch(templates::change))
        .route("/templates/{id}/files/{hash}", get(build_files::link))
        .route("/templates/{id}/builds/{build}", post(unsupported::dockerfile))
        .route("/v2/templates/{id}/builds/{build}", post(builds::start))
        .route("/templates/{id}/builds/{build}/status", get(builds::status))
        .route("/templates/{id}/builds/{build}/logs", get(builds::logs))
        .route("/templates/tags", post(tags::assign).delete(tags::delete))
        .route("/templates/{id}/tags", get(tags::list));
    let rest = Router::new()
        .route("/snapshots", get(snapshots::list))
        .route("/volumes", get(volumes::list).post(volumes::create))
        .route("/volumes/{id}", get(volumes::show).delete(volumes::remove))
        .route("/secrets", get(secrets::list).post(secrets::create))
        .route("/secrets/{id}", get(secrets::show).post(secrets::update).delete(secrets::remove))
        .route("/teams", get(templates::teams));
    let content = Router::new()
        .route("/volumecontent/{id}/path", get(volume_content::stat).patch(volume_content::change).delete(volume_content::remove))
        .route("/volumecontent/{id}/dir", get(volume_content::list).post(volume_content::make_directory))
        .route("/volumecontent/{id}/file", get(volume_content::read).put(volume_content::write))
        .layer(DefaultBodyLimit::disable());
    sandboxes
        .merge(templates)
        .merge(rest)
        .layer(from_fn_with_state(state.clone(), authenticate))
        .merge(content)
        .route("/health", get(|| async { StatusCode::NO_CONTENT }))
        .route("/templates/files/{hash}", put(build_files::receive).layer(DefaultBodyLimit::disable()))
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
