//! Standing still and going on: pause, resume, and connect, which resumes what is paused.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use belljar_core::{Lease, SnapshotKind};
use belljar_http::Authenticated;
use belljar_types::SandboxState;

use super::extract::{Domain, Given, Which};
use super::sandboxes::{Answer, TIMEOUT_V2, live};
use crate::dto::{Connect, Pause, SandboxDto};
use crate::errors::ApiError;
use crate::state::E2bState;
use crate::translate::sandbox_dto;

/// With its memory, or on its files alone; twice is a conflict, which clients take for "it was paused already".
pub(super) async fn pause(
    State(state): State<E2bState>,
    who: Authenticated,
    Which(id): Which,
    Given(pause): Given<Pause>,
) -> Answer<StatusCode> {
    if live(&state, &who, &id).await?.state == SandboxState::Paused {
        return Err(ApiError::new(StatusCode::CONFLICT, format!("sandbox {id} is already paused")));
    }
    let keep = if pause.memory == Some(false) { SnapshotKind::Filesystem } else { SnapshotKind::Memory };
    state.service.pause(&who, &id, keep).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The older way to go on: what runs is a conflict.
pub(super) async fn resume(
    State(state): State<E2bState>,
    who: Authenticated,
    Domain(domain): Domain,
    Which(id): Which,
    Given(connect): Given<Connect>,
) -> Answer<(StatusCode, Json<SandboxDto>)> {
    if live(&state, &who, &id).await?.state == SandboxState::Running {
        return Err(ApiError::new(StatusCode::CONFLICT, format!("sandbox {id} is already running")));
    }
    let sandbox = state.service.resume(&who, &id, Some(lease(&connect))).await?;
    Ok((StatusCode::CREATED, Json(sandbox_dto(&sandbox, &who, &state.tokens, domain.as_deref()))))
}

/// Resumes what is paused; what runs lives at least as long as asked, never shorter than before.
pub(super) async fn connect(
    State(state): State<E2bState>,
    who: Authenticated,
    Domain(domain): Domain,
    Which(id): Which,
    Given(connect): Given<Connect>,
) -> Answer<(StatusCode, Json<SandboxDto>)> {
    let (status, sandbox) = if live(&state, &who, &id).await?.state == SandboxState::Running {
        (StatusCode::OK, state.service.set_lease(&who, &id, Lease::AtLeast(lease(&connect))).await?)
    } else {
        (StatusCode::CREATED, state.service.resume(&who, &id, Some(lease(&connect))).await?)
    };
    Ok((status, Json(sandbox_dto(&sandbox, &who, &state.tokens, domain.as_deref()))))
}

fn lease(connect: &Connect) -> Duration {
    Duration::from_secs(connect.timeout.unwrap_or(TIMEOUT_V2).max(1))
}
