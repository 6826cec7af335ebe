//! Snapshots: take, find, remove; forks, roll-backs, and who came from whom.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use belljar_core::ForkSource;
use belljar_http::{Authenticated, JsonBody, OptionalJson, PathOf, Problem, QueryOf};
use serde::Deserialize;

use crate::dto::{
    ForkListView, ForkRequest, RollbackRequest, SandboxView, SnapshotPageView, SnapshotQuery, SnapshotRequest, SnapshotView, TreeView,
};
use crate::errors::Problems;
use crate::extract::Named;
use crate::state::ApiState;
use crate::translate;

/// The snapshot named in the path, by its id or name.
#[derive(Deserialize)]
pub(crate) struct Which {
    snapshot: String,
}

/// Take a snapshot.
///
/// Of a running or paused sandbox. A running one goes on; it stands still only as long as `stood_still_micros` says.
#[utoipa::path(
    post, path = "/v1/sandboxes/{id}/snapshots", tag = "snapshots", operation_id = "takeSnapshot",
    params(("id" = String, Path, description = "The sandbox")), request_body = SnapshotRequest,
    responses((status = 201, description = "It is on disk.", body = SnapshotView), Problems)
)]
pub(crate) async fn take(
    State(state): State<ApiState>,
    sandbox: Named,
    OptionalJson(request): OptionalJson<SnapshotRequest>,
) -> Result<(StatusCode, Json<SnapshotView>), Problem> {
    let taken = state.service.take_snapshot(&sandbox.caller, &sandbox.id, translate::take_snapshot(request)?).await?;
    Ok((StatusCode::CREATED, Json(translate::snapshot_view(&taken))))
}

/// List snapshots.
///
/// Those of this project, newest first, whether their sandboxes live or not.
#[utoipa::path(
    get, path = "/v1/snapshots", tag = "snapshots", operation_id = "listSnapshots", params(SnapshotQuery),
    responses((status = 200, description = "A page.", body = SnapshotPageView), Problems)
)]
pub(crate) async fn list(
    State(state): State<ApiState>,
    caller: Authenticated,
    QueryOf(query): QueryOf<SnapshotQuery>,
) -> Result<Json<SnapshotPageView>, Problem> {
    let (filter, after, limit) = translate::snapshot_query(query)?;
    let page = state.service.snapshots(&caller, &filter, after.as_ref(), limit).await?;
    Ok(Json(translate::snapshot_page(&page)))
}

/// Get a snapshot.
#[utoipa::path(
    get, path = "/v1/snapshots/{snapshot}", tag = "snapshots", operation_id = "getSnapshot",
    params(("snapshot" = String, Path, description = "Its id or name")),
    responses((status = 200, description = "The snapshot.", body = SnapshotView), Problems)
)]
pub(crate) async fn get(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(Which { snapshot }): PathOf<Which>,
) -> Result<Json<SnapshotView>, Problem> {
    Ok(Json(translate::snapshot_view(&state.service.snapshot(&caller, &snapshot).await?)))
}

/// Remove a snapshot.
///
/// Sandboxes that were made from it live on.
#[utoipa::path(
    delete, path = "/v1/snapshots/{snapshot}", tag = "snapshots", operation_id = "removeSnapshot",
    params(("snapshot" = String, Path, description = "Its id or name")),
    responses((status = 204, description = "It is gone."), Problems)
)]
pub(crate) async fn remove(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(Which { snapshot }): PathOf<Which>,
) -> Result<StatusCode, Problem> {
    state.service.remove_snapshot(&caller, &snapshot).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Fork a sandbox.
///
/// Makes copies of a running or paused sandbox, with its memory where its class can keep that. It stands still once, however many are made.
#[utoipa::path(
    post, path = "/v1/sandboxes/{id}/forks", tag = "snapshots", operation_id = "forkSandbox",
    params(("id" = String, Path, description = "The sandbox")), request_body = ForkRequest,
    responses((status = 201, description = "What came of each.", body = ForkListView), Problems)
)]
pub(crate) async fn fork_sandbox(
    State(state): State<ApiState>,
    sandbox: Named,
    OptionalJson(request): OptionalJson<ForkRequest>,
) -> Result<(StatusCode, Json<ForkListView>), Problem> {
    let forks = state.service.fork(&sandbox.caller, ForkSource::Sandbox(&sandbox.id), translate::fork(request)?).await?;
    Ok((StatusCode::CREATED, Json(translate::fork_list(forks))))
}

/// Fork a snapshot.
///
/// Makes sandboxes that begin as the snapshot was.
#[utoipa::path(
    post, path = "/v1/snapshots/{snapshot}/forks", tag = "snapshots", operation_id = "forkSnapshot",
    params(("snapshot" = String, Path, description = "Its id or name")), request_body = ForkRequest,
    responses((status = 201, description = "What came of each.", body = ForkListView), Problems)
)]
pub(crate) async fn fork_snapshot(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(Which { snapshot }): PathOf<Which>,
    OptionalJson(request): OptionalJson<ForkRequest>,
) -> Result<(StatusCode, Json<ForkListView>), Problem> {
    let forks = state.service.fork(&caller, ForkSource::Snapshot(&snapshot), translate::fork(request)?).await?;
    Ok((StatusCode::CREATED, Json(translate::fork_list(forks))))
}

/// Roll a sandbox back.
///
/// To one of its own snapshots, running or paused; it then runs. What it did since is gone. If it fails half-way, the sandbox is paused as the
/// snapshot was.
#[utoipa::path(
    post, path = "/v1/sandboxes/{id}/rollback", tag = "snapshots", operation_id = "rollBackSandbox",
    params(("id" = String, Path, description = "The sandbox")), request_body = RollbackRequest,
    responses((status = 200, description = "The sandbox as it is now.", body = SandboxView), Problems)
)]
pub(crate) async fn rollback(
    State(state): State<ApiState>,
    sandbox: Named,
    JsonBody(request): JsonBody<RollbackRequest>,
) -> Result<Json<SandboxView>, Problem> {
    let back = state.service.rollback(&sandbox.caller, &sandbox.id, &request.snapshot).await?;
    Ok(Json(translate::sandbox_view(&back)))
}

/// Who came from whom.
///
/// Everything that is related to a sandbox: the one it all began with, its snapshots, its copies, theirs.
#[utoipa::path(
    get, path = "/v1/sandboxes/{id}/tree", tag = "snapshots", operation_id = "getTree",
    params(("id" = String, Path, description = "The sandbox")),
    responses((status = 200, description = "The tree.", body = TreeView), Problems)
)]
pub(crate) async fn tree(State(state): State<ApiState>, sandbox: Named) -> Result<Json<TreeView>, Problem> {
    let of = state.service.sandbox(&sandbox.caller, &sandbox.id).await?;
    let family = state.service.tree(&sandbox.caller, &sandbox.id).await?;
    Ok(Json(translate::tree_view(&of, &family)))
}
