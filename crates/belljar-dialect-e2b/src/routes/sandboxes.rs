//! One sandbox of the control plane: make, show, end, and how long it lives.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use belljar_core::{Lease, SnapshotKind};
use belljar_http::Authenticated;
use belljar_types::{OnTimeout, Sandbox, SandboxId, SandboxState, hex};
use sha2::{Digest, Sha256};

use super::extract::{Domain, Given, Which};
use crate::dto::{NetworkDto, NewSandbox, Refresh, SandboxDetail, SandboxDto, Timeout};
use crate::errors::ApiError;
use crate::state::E2bState;
use crate::translate::{create_request, detail, outgoing, sandbox_dto};

/// Seconds a sandbox lives when its maker does not say, by the path it was made on.
const TIMEOUT_V1: u64 = 15;
pub(super) const TIMEOUT_V2: u64 = 300;
/// Seconds a refresh adds when its sender does not say.
const REFRESH: u64 = 15;
/// The longest key the core takes as it is.
const PLAIN_KEY: usize = 128;

pub(super) type Answer<T> = Result<T, ApiError>;

pub(super) async fn create_v1(
    State(state): State<E2bState>,
    who: Authenticated,
    Domain(domain): Domain,
    headers: HeaderMap,
    Given(new): Given<NewSandbox>,
) -> Answer<(StatusCode, Json<SandboxDto>)> {
    create(&state, &who, domain, &headers, new, TIMEOUT_V1).await
}

pub(super) async fn create_v2(
    State(state): State<E2bState>,
    who: Authenticated,
    Domain(domain): Domain,
    headers: HeaderMap,
    Given(new): Given<NewSandbox>,
) -> Answer<(StatusCode, Json<SandboxDto>)> {
    create(&state, &who, domain, &headers, NewSandbox { secure: Some(true), ..new }, TIMEOUT_V2).await
}

async fn create(
    state: &E2bState,
    who: &Authenticated,
    domain: Option<String>,
    headers: &HeaderMap,
    new: NewSandbox,
    timeout: u64,
) -> Answer<(StatusCode, Json<SandboxDto>)> {
    let request = create_request(new, timeout, idempotency_key(headers)?, state.service.filters())?;
    let sandbox = state.service.create_of_either(who, request).await?;
    state.known.note(&sandbox.id, &sandbox.project);
    Ok((StatusCode::CREATED, Json(sandbox_dto(&sandbox, who, &state.tokens, domain.as_deref()))))
}

fn idempotency_key(headers: &HeaderMap) -> Answer<Option<String>> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    let key = key.to_str().ok().filter(|key| (1..=255).contains(&key.len()));
    let key = key.ok_or_else(|| ApiError::bad_request("Idempotency-Key must be 1 to 255 visible characters"))?;
    if key.len() <= PLAIN_KEY {
        return Ok(Some(key.to_owned()));
    }
    Ok(Some(hex(&Sha256::digest(key.as_bytes()))))
}

pub(super) async fn show(
    State(state): State<E2bState>,
    who: Authenticated,
    Domain(domain): Domain,
    Which(id): Which,
) -> Answer<Json<SandboxDetail>> {
    let sandbox = live(&state, &who, &id).await?;
    Ok(Json(detail(&sandbox, &who, &state.tokens, domain.as_deref())))
}

pub(super) async fn kill(State(state): State<E2bState>, who: Authenticated, Which(id): Which) -> Answer<StatusCode> {
    live(&state, &who, &id).await?;
    end(&state, &who, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Kills it and forgets what was remembered of it.
async fn end(state: &E2bState, who: &Authenticated, id: &SandboxId) -> Answer<Arc<Sandbox>> {
    let ended = state.service.kill(who, id).await?;
    state.known.forget(id);
    state.watchers.forget(id);
    Ok(ended)
}

pub(super) async fn timeout(
    State(state): State<E2bState>,
    who: Authenticated,
    Which(id): Which,
    Given(Timeout { timeout }): Given<Timeout>,
) -> Answer<StatusCode> {
    let sandbox = live(&state, &who, &id).await?;
    // No time left means what the end of its time means, at once.
    match (timeout, sandbox.on_timeout) {
        (0, OnTimeout::Kill) => end(&state, &who, &id).await?,
        (0, OnTimeout::Pause) => state.service.pause(&who, &id, SnapshotKind::Memory).await?,
        (0, OnTimeout::PauseFiles) => state.service.pause(&who, &id, SnapshotKind::Filesystem).await?,
        (seconds, _) => state.service.set_lease(&who, &id, Lease::FromNow(Duration::from_secs(seconds))).await?,
    };
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn refresh(
    State(state): State<E2bState>,
    who: Authenticated,
    Which(id): Which,
    Given(Refresh { duration }): Given<Refresh>,
) -> Answer<StatusCode> {
    live(&state, &who, &id).await?;
    let duration = duration.unwrap_or(REFRESH);
    if duration > 3600 {
        return Err(ApiError::bad_request("duration must be at most 3600 seconds"));
    }
    state.service.set_lease(&who, &id, Lease::AtLeast(Duration::from_secs(duration.max(1)))).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Replaces all rules about what goes out; connections that are not allowed any more are cut.
pub(super) async fn network(
    State(state): State<E2bState>,
    who: Authenticated,
    Which(id): Which,
    Given(network): Given<NetworkDto>,
) -> Answer<StatusCode> {
    let sandbox = live(&state, &who, &id).await?;
    match state.service.set_outgoing(&who, &sandbox, outgoing(None, &network)?).await? {
        Some(_) => Ok(StatusCode::NO_CONTENT),
        None => Err(ApiError::unsupported("changing the network of a sandbox that was made without the proxy")),
    }
}

/// A sandbox that E2B's clients would still call one. For them, what has ended is not there.
pub(super) async fn live(state: &E2bState, who: &Authenticated, id: &SandboxId) -> Answer<Arc<Sandbox>> {
    let sandbox = state.service.sandbox(who, id).await?;
    if sandbox.state.has_ended() || sandbox.state == SandboxState::Stopping {
        return Err(ApiError::no_sandbox(id.as_str()));
    }
    state.known.note(&sandbox.id, &sandbox.project);
    Ok(sandbox)
}
