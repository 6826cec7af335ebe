//! Volumes: make, find, copy, remove.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use belljar_http::{Authenticated, JsonBody, PathOf, Problem, QueryOf};
use serde::Deserialize;

use crate::dto::{CloneVolumeRequest, VolumePageView, VolumeQuery, VolumeRequest, VolumeStatusView, VolumeView};
use crate::errors::Problems;
use crate::state::ApiState;
use crate::translate;

/// The volume named in the path, by its id or name.
#[derive(Deserialize)]
pub(crate) struct Which {
    pub(crate) volume: String,
}

/// Make a volume.
///
/// Storage that outlives sandboxes. Give it to them with `volumes` when they are made.
#[utoipa::path(
    post, path = "/v1/volumes", tag = "volumes", operation_id = "createVolume", request_body = VolumeRequest,
    responses((status = 201, description = "It is there, and empty.", body = VolumeView), Problems)
)]
pub(crate) async fn create(
    State(state): State<ApiState>,
    caller: Authenticated,
    JsonBody(request): JsonBody<VolumeRequest>,
) -> Result<(StatusCode, Json<VolumeView>), Problem> {
    let volume = state.service.create_volume(&caller, translate::create_volume(&request)?).await?;
    Ok((StatusCode::CREATED, Json(translate::volume_view(&volume))))
}

/// List volumes.
///
/// Those of this project, by name.
#[utoipa::path(
    get, path = "/v1/volumes", tag = "volumes", operation_id = "listVolumes", params(VolumeQuery),
    responses((status = 200, description = "A page.", body = VolumePageView), Problems)
)]
pub(crate) async fn list(
    State(state): State<ApiState>,
    caller: Authenticated,
    QueryOf(query): QueryOf<VolumeQuery>,
) -> Result<Json<VolumePageView>, Problem> {
    let (after, limit) = translate::volume_query(&query)?;
    Ok(Json(translate::volume_page(&state.service.volumes(&caller, after.as_ref(), limit).await?)))
}

/// Get a volume.
///
/// With what was written to it, and which sandboxes have it.
#[utoipa::path(
    get, path = "/v1/volumes/{volume}", tag = "volumes", operation_id = "getVolume",
    params(("volume" = String, Path, description = "Its id or name")),
    responses((status = 200, description = "The volume.", body = VolumeStatusView), Problems)
)]
pub(crate) async fn get(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(Which { volume }): PathOf<Which>,
) -> Result<Json<VolumeStatusView>, Problem> {
    Ok(Json(translate::volume_status(&state.service.volume_status(&caller, &volume).await?)))
}

/// Remove a volume.
///
/// With all it holds. Refused while a sandbox has it, running or paused; copies live on.
#[utoipa::path(
    delete, path = "/v1/volumes/{volume}", tag = "volumes", operation_id = "removeVolume",
    params(("volume" = String, Path, description = "Its id or name")),
    responses((status = 204, description = "It is gone."), Problems)
)]
pub(crate) async fn remove(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(Which { volume }): PathOf<Which>,
) -> Result<StatusCode, Problem> {
    state.service.remove_volume(&caller, &volume).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Clone a volume.
///
/// Holds what the volume holds now, in constant time, whatever that is; from then on both go their own ways. With `read_only` it keeps this state.
#[utoipa::path(
    post, path = "/v1/volumes/{volume}/clones", tag = "volumes", operation_id = "cloneVolume",
    params(("volume" = String, Path, description = "Its id or name")), request_body = CloneVolumeRequest,
    responses((status = 201, description = "The copy is there.", body = VolumeView), Problems)
)]
pub(crate) async fn copy(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(Which { volume }): PathOf<Which>,
    JsonBody(request): JsonBody<CloneVolumeRequest>,
) -> Result<(StatusCode, Json<VolumeView>), Problem> {
    let copy = state.service.copy_volume(&caller, &volume, translate::copy_volume(&request)?).await?;
    Ok((StatusCode::CREATED, Json(translate::volume_view(&copy))))
}
