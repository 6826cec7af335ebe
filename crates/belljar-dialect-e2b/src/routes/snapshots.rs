//! Snapshots and forks. For E2B a snapshot is a template: sandboxes are made from its id or name, and it is removed as a template is.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use belljar_core::{CoreError, ForkRequest, ForkSource, SnapshotFilter, TakeSnapshot};
use belljar_http::Authenticated;
use belljar_types::Sandbox;

use super::extract::{Asked, Domain, Given, Which};
use super::lists::NEXT;
use super::sandboxes::{Answer, live};
use crate::dto::{ForkDto, ForkErrorDto, NewFork, NewSnapshot, SnapshotDto, SnapshotQuery};
use crate::errors::ApiError;
use crate::state::E2bState;
use crate::translate::{sandbox_dto, snapshot_cursor, snapshot_dto, snapshot_token, template_name};

/// Seconds a fork lives when its maker does not say.
const TIMEOUT: u64 = 15;
const LARGEST_PAGE: u32 = 100;

pub(super) async fn take(
    State(state): State<E2bState>,
    who: Authenticated,
    Which(id): Which,
    Given(new): Given<NewSnapshot>,
) -> Answer<(StatusCode, Json<SnapshotDto>)> {
    live(&state, &who, &id).await?;
    let wrong = |_| ApiError::bad_request("name must be 1 to 64 letters, digits, dots, dashes and underscores");
    let name = new.name.as_deref().filter(|name| !name.is_empty()).map(|name| plain_name(name)?.parse().map_err(wrong)).transpose()?;
    let taken = state.service.take_snapshot(&who, &id, TakeSnapshot { name, ..TakeSnapshot::default() }).await?;
    Ok((StatusCode::CREATED, Json(snapshot_dto(&taken))))
}

pub(super) async fn list(
    State(state): State<E2bState>,
    who: Authenticated,
    Asked(query): Asked<SnapshotQuery>,
) -> Answer<(HeaderMap, Json<Vec<SnapshotDto>>)> {
    let mut headers = HeaderMap::new();
    let limit = query.limit.unwrap_or(LARGEST_PAGE);
    if !(1..=LARGEST_PAGE).contains(&limit) {
        return Err(ApiError::bad_request(format!("limit must be between 1 and {LARGEST_PAGE}")));
    }
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let after = given(query.next_token).map(|token| snapshot_cursor(&token)).transpose()?;
    let source = given(query.sandbox_id);
    // What cannot be an id or a name is nobody's.
    let (Ok(source), Ok(name)) =
        (source.map(|id| id.parse()).transpose(), given(query.name).map(|name| plain_name(&name).unwrap_or_default().parse()).transpose())
    else {
        return Ok((headers, Json(Vec::new())));
    };
    let page = state.service.snapshots(&who, &SnapshotFilter { source, name }, after.as_ref(), limit).await?;
    if let Some(next) = page.next.as_ref().and_then(|next| HeaderValue::try_from(snapshot_token(next)).ok()) {
        headers.insert(NEXT, next);
    }
    Ok((headers, Json(page.snapshots.iter().map(snapshot_dto).collect())))
}

pub(super) async fn fork(
    State(state): State<E2bState>,
    who: Authenticated,
    Domain(domain): Domain,
    Which(id): Which,
    Given(new): Given<NewFork>,
) -> Answer<(StatusCode, Json<Vec<ForkDto>>)> {
    live(&state, &who, &id).await?;
    let lease = Some(Duration::from_secs(new.timeout.unwrap_or(TIMEOUT).max(1)));
    let request = ForkRequest { count: new.count.unwrap_or(1), lease, ..ForkRequest::default() };
    let forks = state.service.fork(&who, ForkSource::Sandbox(&id), request).await?;
    let told = |fork: Result<Arc<Sandbox>, CoreError>| match fork {
        Ok(sandbox) => {
            state.known.note(&sandbox.id, &sandbox.project);
            ForkDto { sandbox: Some(sandbox_dto(&sandbox, &who, &state.tokens, domain.as_deref())), error: None }
        }
        Err(error) => {
            let (code, message) = ApiError::from(error).told();
            ForkDto { sandbox: None, error: Some(ForkErrorDto { code, message }) }
        }
    };
    Ok((StatusCode::CREATED, Json(forks.into_iter().map(told).collect())))
}

/// Removes the snapshot of that id or name. Says whether there was one.
pub(super) async fn remove(state: &E2bState, who: &Authenticated, id: &str) -> Answer<bool> {
    match state.service.remove_snapshot(who, &plain_name(id)?).await {
        Ok(()) => Ok(true),
        Err(CoreError::NoSnapshot { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Without the team and the tag that clients may write around it.
fn plain_name(name: &str) -> Answer<String> {
    template_name(name).map(|name| name.to_string())
}
