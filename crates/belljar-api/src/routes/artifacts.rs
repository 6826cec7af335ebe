//! Artifacts: files that are taken out of a sandbox on purpose, and are there when it is gone.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use belljar_http::{Authenticated, JsonBody, PathOf, Problem, QueryOf};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use crate::dto::{ArtifactPageView, ArtifactQuery, ArtifactView, KeepRequest};
use crate::errors::{Problems, artifact_id};
use crate::extract::Named;
use crate::state::ApiState;
use crate::translate;

const DIGEST: HeaderName = HeaderName::from_static("x-belljar-sha256");

/// The artifact named in the path.
#[derive(Deserialize)]
pub(crate) struct Which {
    artifact: String,
}

/// Keep a file.
///
/// Takes it out of a running sandbox; from then on it can be fetched whether the sandbox lives or not.
#[utoipa::path(
    post, path = "/v1/sandboxes/{id}/artifacts", tag = "artifacts", operation_id = "keepFile",
    params(("id" = String, Path, description = "The sandbox")), request_body = KeepRequest,
    responses((status = 201, description = "It is kept.", body = ArtifactView), Problems)
)]
pub(crate) async fn keep(
    State(state): State<ApiState>,
    sandbox: Named,
    JsonBody(request): JsonBody<KeepRequest>,
) -> Result<(StatusCode, Json<ArtifactView>), Problem> {
    let kept = state.service.keep_file(&sandbox.caller, &sandbox.id, translate::keep_file(request)?).await?;
    Ok((StatusCode::CREATED, Json(translate::artifact_view(&kept))))
}

/// List artifacts.
///
/// Those of this project, newest first.
#[utoipa::path(
    get, path = "/v1/artifacts", tag = "artifacts", operation_id = "listArtifacts", params(ArtifactQuery),
    responses((status = 200, description = "A page.", body = ArtifactPageView), Problems)
)]
pub(crate) async fn list(
    State(state): State<ApiState>,
    caller: Authenticated,
    QueryOf(query): QueryOf<ArtifactQuery>,
) -> Result<Json<ArtifactPageView>, Problem> {
    let (sandbox, after, limit) = translate::artifact_query(query)?;
    let page = state.service.artifacts(&caller, sandbox.as_ref(), after.as_ref(), limit).await?;
    Ok(Json(translate::artifact_page(&page)))
}

/// Get an artifact.
#[utoipa::path(
    get, path = "/v1/artifacts/{artifact}", tag = "artifacts", operation_id = "getArtifact",
    params(("artifact" = String, Path, description = "The artifact")),
    responses((status = 200, description = "What it is.", body = ArtifactView), Problems)
)]
pub(crate) async fn get(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(Which { artifact }): PathOf<Which>,
) -> Result<Json<ArtifactView>, Problem> {
    Ok(Json(translate::artifact_view(&state.service.artifact(&caller, &artifact_id(&artifact)?).await?)))
}

/// Fetch an artifact's content.
///
/// As a download, whatever it is: a browser is told neither to show it nor to guess.
#[utoipa::path(
    get, path = "/v1/artifacts/{artifact}/content", tag = "artifacts", operation_id = "fetchArtifact",
    params(("artifact" = String, Path, description = "The artifact")),
    responses((status = 200, description = "Its bytes.", body = String, content_type = "application/octet-stream"), Problems)
)]
pub(crate) async fn content(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(Which { artifact }): PathOf<Which>,
) -> Result<Response, Problem> {
    let (artifact, bytes) = state.service.artifact_content(&caller, &artifact_id(&artifact)?).await?;
    let mut response = Body::from_stream(bytes).into_response();
    let headers = response.headers_mut();
    let name = utf8_percent_encode(&artifact.name, NON_ALPHANUMERIC);
    for (header, value) in [
        (header::CONTENT_TYPE, artifact.media_type.clone()),
        (header::CONTENT_LENGTH, artifact.bytes.to_string()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename*=UTF-8''{name}")),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (DIGEST, artifact.sha256.clone()),
    ] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(header, value);
        }
    }
    Ok(response)
}

/// Remove an artifact.
#[utoipa::path(
    delete, path = "/v1/artifacts/{artifact}", tag = "artifacts", operation_id = "removeArtifact",
    params(("artifact" = String, Path, description = "The artifact")),
    responses((status = 204, description = "It is gone."), Problems)
)]
pub(crate) async fn remove(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(Which { artifact }): PathOf<Which>,
) -> Result<StatusCode, Problem> {
    state.service.remove_artifact(&caller, &artifact_id(&artifact)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
