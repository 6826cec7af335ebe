//! Secrets of a project. Values go in and are never told.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use belljar_core::SecretInfo;
use belljar_http::{Authenticated, moment};
use belljar_types::Secret;

use super::extract::{Asked, Given};
use super::lists::NEXT;
use super::sandboxes::Answer;
use crate::dto::{NewSecret, SecretDto, SecretQuery, SecretUpdate};
use crate::errors::ApiError;
use crate::state::E2bState;

const LARGEST_PAGE: usize = 100;

fn dto(info: SecretInfo) -> SecretDto {
    SecretDto {
        secret_id: info.id,
        name: info.name,
        current_version: info.version,
        metadata: info.metadata,
        created_at: moment(info.created_at),
        updated_at: moment(info.updated_at),
    }
}

pub(super) async fn list(
    State(state): State<E2bState>,
    who: Authenticated,
    Asked(query): Asked<SecretQuery>,
) -> Answer<(HeaderMap, Json<Vec<SecretDto>>)> {
    let limit = query.limit.unwrap_or(LARGEST_PAGE);
    if !(1..=LARGEST_PAGE).contains(&limit) {
        return Err(ApiError::bad_request(format!("limit must be between 1 and {LARGEST_PAGE}")));
    }
    // By name, so that a name is where to go on.
    let after = query.next_token.unwrap_or_default();
    let mut left = state.service.secrets(&who).await?.into_iter().filter(|info| info.name > after).peekable();
    let page: Vec<SecretInfo> = left.by_ref().take(limit).collect();
    let mut headers = HeaderMap::new();
    if let (Some(_), Some(last)) = (left.peek(), page.last())
        && let Ok(next) = HeaderValue::try_from(&last.name)
    {
        headers.insert(NEXT, next);
    }
    Ok((headers, Json(page.into_iter().map(dto).collect())))
}

pub(super) async fn create(
    State(state): State<E2bState>,
    who: Authenticated,
    Given(new): Given<NewSecret>,
) -> Answer<(StatusCode, Json<SecretDto>)> {
    let name = new.name.to_ascii_lowercase();
    let made = state.service.add_secret(&who, &name, Secret::new(new.value), new.metadata.unwrap_or_default()).await?;
    Ok((StatusCode::CREATED, Json(dto(made))))
}

pub(super) async fn show(State(state): State<E2bState>, who: Authenticated, Path(which): Path<String>) -> Answer<Json<SecretDto>> {
    Ok(Json(dto(state.service.secret(&who, &selector(&which)).await?)))
}

pub(super) async fn update(
    State(state): State<E2bState>,
    who: Authenticated,
    Path(which): Path<String>,
    Given(new): Given<SecretUpdate>,
) -> Answer<Json<SecretDto>> {
    let metadata: Option<BTreeMap<String, String>> = new.metadata;
    Ok(Json(dto(state.service.change_secret(&who, &selector(&which), Secret::new(new.value), metadata).await?)))
}

pub(super) async fn remove(State(state): State<E2bState>, who: Authenticated, Path(which): Path<String>) -> Answer<StatusCode> {
    state.service.remove_secret(&who, &selector(&which)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Names are kept in small letters; so are ids.
fn selector(which: &str) -> String {
    which.to_ascii_lowercase()
}
