//! Snapshots on their way to other servers, and from them.

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use belljar_http::{Authenticated, JsonBody, PathOf, Problem, QueryOf};
use futures_util::TryStreamExt;
use serde::Deserialize;

use crate::dto::{ImportQuery, PullRequest, PushedView, SnapshotView};
use crate::errors::Problems;
use crate::state::ApiState;
use crate::translate;

/// The snapshot named in the path, by its id or name.
#[derive(Deserialize)]
pub(crate) struct Which {
    snapshot: String,
}

/// Export a snapshot.
///
/// As one file: layers, what was written over them, the memory image if there is one, and a digest of each part. It is as secret as its
/// sandbox was.
#[utoipa::path(
    get, path = "/v1/snapshots/{snapshot}/file", tag = "snapshots", operation_id = "exportSnapshot",
    params(("snapshot" = String, Path, description = "Its id or name")),
    responses((status = 200, description = "The file.", body = String, content_type = "application/octet-stream"), Problems)
)]
pub(crate) async fn export(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(Which { snapshot }): PathOf<Which>,
) -> Result<Response, Problem> {
    let (_, content) = state.service.export_snapshot(&caller, &snapshot).await?;
    let mut response = Body::from_stream(content).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    Ok(response)
}

/// Import a snapshot.
///
/// A file that was exported here or on another server. Every digest is checked; what is damaged, cut short, of a newer format or something
/// else is refused and leaves nothing. One with memory needs the scope `admin`, and the engine and processor it was taken with.
#[utoipa::path(
    post, path = "/v1/snapshot-imports", tag = "snapshots", operation_id = "importSnapshot", params(ImportQuery),
    request_body(content = String, content_type = "application/octet-stream", description = "The file"),
    responses((status = 201, description = "It is on disk.", body = SnapshotView), Problems)
)]
pub(crate) async fn import(
    State(state): State<ApiState>,
    caller: Authenticated,
    QueryOf(query): QueryOf<ImportQuery>,
    request: Request,
) -> Result<(StatusCode, Json<SnapshotView>), Problem> {
    let content = Box::pin(request.into_body().into_data_stream().map_err(std::io::Error::other));
    let taken = state.service.import_snapshot(&caller, content, translate::import(query)?).await?;
    Ok((StatusCode::CREATED, Json(translate::snapshot_view(&taken))))
}

/// Push a snapshot.
///
/// To where this server keeps its blobs, so that another server with the same place can pull it, under its name or id.
#[utoipa::path(
    post, path = "/v1/snapshots/{snapshot}/push", tag = "snapshots", operation_id = "pushSnapshot",
    params(("snapshot" = String, Path, description = "Its id or name")),
    responses((status = 200, description = "It can be pulled.", body = PushedView), Problems)
)]
pub(crate) async fn push(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(Which { snapshot }): PathOf<Which>,
) -> Result<Json<PushedView>, Problem> {
    Ok(Json(translate::pushed_view(&state.service.push_snapshot(&caller, &snapshot).await?)))
}

/// Pull a snapshot.
///
/// One that this project pushed, here or on another server.
#[utoipa::path(
    post, path = "/v1/snapshot-pulls", tag = "snapshots", operation_id = "pullSnapshot", request_body = PullRequest,
    responses((status = 201, description = "It is on disk.", body = SnapshotView), Problems)
)]
pub(crate) async fn pull(
    State(state): State<ApiState>,
    caller: Authenticated,
    JsonBody(request): JsonBody<PullRequest>,
) -> Result<(StatusCode, Json<SnapshotView>), Problem> {
    let query = ImportQuery { name: request.rename, expires_in_seconds: request.expires_in_seconds };
    let taken = state.service.pull_snapshot(&caller, &request.name, translate::import(query)?).await?;
    Ok((StatusCode::CREATED, Json(translate::snapshot_view(&taken))))
}
