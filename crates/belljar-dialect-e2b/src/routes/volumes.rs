//! Volumes of the control plane.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use belljar_core::CreateVolume;
use belljar_http::Authenticated;
use belljar_types::Volume;

use super::extract::Given;
use super::sandboxes::Answer;
use crate::dto::{NewVolume, VolumeAndToken, VolumeDto};
use crate::state::E2bState;
use crate::translate::volume_dto;

const PAGE: u32 = 1000;

pub(super) async fn create(
    State(state): State<E2bState>,
    who: Authenticated,
    Given(new): Given<NewVolume>,
) -> Answer<(StatusCode, Json<VolumeAndToken>)> {
    let made = state.service.create_volume(&who, CreateVolume { name: new.name.parse()?, size_bytes: None, bucket: None }).await?;
    Ok((StatusCode::CREATED, Json(with_token(&state, &made))))
}

/// All of them: E2B's list has no pages.
pub(super) async fn list(State(state): State<E2bState>, who: Authenticated) -> Answer<Json<Vec<VolumeDto>>> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = state.service.volumes(&who, after.as_ref(), PAGE).await?;
        all.extend(page.volumes.iter().map(volume_dto));
        after = page.next;
        if after.is_none() {
            return Ok(Json(all));
        }
    }
}

pub(super) async fn show(State(state): State<E2bState>, who: Authenticated, Path(id): Path<String>) -> Answer<Json<VolumeAndToken>> {
    Ok(Json(with_token(&state, &state.service.volume(&who, &id).await?)))
}

pub(super) async fn remove(State(state): State<E2bState>, who: Authenticated, Path(id): Path<String>) -> Answer<StatusCode> {
    state.service.remove_volume(&who, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn with_token(state: &E2bState, volume: &Volume) -> VolumeAndToken {
    VolumeAndToken { volume: volume_dto(volume), token: state.tokens.volume(&volume.id, &volume.project) }
}
