//! Volumes of the control plane.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use belljar_core::{Caller, CreateVolume};
use belljar_http::Authenticated;
use belljar_types::{Scope, Volume};

use super::extract::Given;
use super::sandboxes::Answer;
use crate::dto::{NewVolume, VolumeAndToken, VolumeDto};
use crate::state::E2bState;
use crate::tokens::Tokens;
use crate::translate::volume_dto;

pub(super) async fn create(
    State(state): State<E2bState>,
    who: Authenticated,
    Given(new): Given<NewVolume>,
) -> Answer<(StatusCode, Json<VolumeAndToken>)> {
    let made = state.service.create_volume(&who, CreateVolume { name: new.name.parse()?, size_bytes: None, bucket: None }).await?;
    Ok((StatusCode::CREATED, Json(with_token(&state.tokens, &who, &made)?)))
}

/// All of them: E2B's list has no pages.
pub(super) async fn list(State(state): State<E2bState>, who: Authenticated) -> Answer<Json<Vec<VolumeDto>>> {
    Ok(Json(state.service.all_volumes(&who).await?.iter().map(volume_dto).collect()))
}

pub(super) async fn show(State(state): State<E2bState>, who: Authenticated, Path(id): Path<String>) -> Answer<Json<VolumeAndToken>> {
    let volume = state.service.volume(&who, &id).await?;
    Ok(Json(with_token(&state.tokens, &who, &volume)?))
}

pub(super) async fn remove(State(state): State<E2bState>, who: Authenticated, Path(id): Path<String>) -> Answer<StatusCode> {
    state.service.remove_volume(&who, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The token writes too, so it is for whoever may use volumes. E2B's clients cannot read the answer without one: nobody else has an answer.
fn with_token(tokens: &Tokens, who: &Caller, volume: &Volume) -> Answer<VolumeAndToken> {
    who.require(Scope::Use)?;
    Ok(VolumeAndToken { volume: volume_dto(volume), token: tokens.volume(&volume.id, &volume.project) })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::response::IntoResponse;
    use belljar_http::PortTokens;
    use belljar_types::{KeyId, Timestamp, VolumeId, VolumeState};

    use super::*;

    #[test]
    fn only_who_may_use_volumes_is_told_a_volumes_token() {
        let tokens = Tokens::new(Arc::new(PortTokens::new([3; 32])));
        let volume = Volume {
            id: VolumeId::random(),
            project: "default".parse().unwrap(),
            name: "data".parse().unwrap(),
            state: VolumeState::Ready,
            size_bytes: Volume::LEAST_BYTES,
            read_only: false,
            origin: None,
            bucket: None,
            created_at: Timestamp(1),
        };
        for (scope, status) in [(Scope::Read, 403), (Scope::Templates, 403), (Scope::Use, 200), (Scope::Admin, 200)] {
            let who = Caller { key: KeyId::random(), project: volume.project.clone(), scopes: [scope].into() };
            let answer = with_token(&tokens, &who, &volume).map(Json).into_response();
            assert_eq!(answer.status().as_u16(), status, "{scope}");
        }
    }
}
