//! Volumes of the control plane.

use axum::Json;
use axum::extract::{Path, State};
use belljar_core::CreateVolume;
use belljar_http::{Authenticated, JsonBody};

use super::sandboxes::Answer;
use crate::state::DaytonaState;
use crate::translate::volume_dto;

/// A volume to make.
#[derive(serde::Deserialize)]
pub(super) struct NewVolume {
    name: String,
}

pub(super) async fn create(
    State(state): State<DaytonaState>,
    who: Authenticated,
    JsonBody(new): JsonBody<NewVolume>,
) -> Answer<Json<serde_json::Value>> {
    let made = state.service.create_volume(&who, CreateVolume { name: new.name.parse()?, size_bytes: None, bucket: None }).await?;
    Ok(Json(volume_dto(&made)))
}

/// All of them: Daytona's list has no pages.
pub(super) async fn list(State(state): State<DaytonaState>, who: Authenticated) -> Answer<Json<Vec<serde_json::Value>>> {
    Ok(Json(state.service.all_volumes(&who).await?.iter().map(volume_dto).collect()))
}

/// By its id or its name.
pub(super) async fn show(State(state): State<DaytonaState>, who: Authenticated, Path(id): Path<String>) -> Answer<Json<serde_json::Value>> {
    Ok(Json(volume_dto(&state.service.volume(&who, &id).await?)))
}

pub(super) async fn remove(State(state): State<DaytonaState>, who: Authenticated, Path(id): Path<String>) -> Answer<()> {
    Ok(state.service.remove_volume(&who, &id).await?)
}
