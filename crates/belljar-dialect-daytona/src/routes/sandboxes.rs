//! One sandbox of the control plane: made, shown, stopped, started and deleted. Each answer comes when it is done, so that clients need not wait for
//! anything afterwards.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use belljar_core::{Lease, SnapshotKind};
use belljar_http::{Authenticated, JsonBody};
use belljar_types::{OnTimeout, Sandbox, SandboxState};

use super::find::{Found, named};
use crate::dto::{NewSandbox, SandboxDto};
use crate::errors::ApiError;
use crate::state::DaytonaState;
use crate::translate::{Links, create_request, name_of, sandbox_dto};

pub(super) type Answer<T> = Result<T, ApiError>;

pub(super) async fn create(
    State(state): State<DaytonaState>,
    who: Authenticated,
    links: Links,
    JsonBody(new): JsonBody<NewSandbox>,
) -> Answer<Json<SandboxDto>> {
    let config = state.service.config();
    let request = create_request(new, config.max_lease, state.service.filters())?;
    let sandbox = with_name(&state, &who, name_of(&request.metadata), || state.service.create_of_either(&who, request.clone())).await?;
    state.known.note(&sandbox.id, &sandbox.project);
    Ok(Json(sandbox_dto(&sandbox, &links)))
}

/// Makes something that is to have a name that nothing else has.
pub(super) async fn with_name<T, F: Future<Output = Result<T, belljar_core::CoreError>>>(
    state: &DaytonaState,
    who: &Authenticated,
    name: Option<&str>,
    make: impl FnOnce() -> F,
) -> Answer<T> {
    let taken =
        |name: &str| ApiError::conflict(format!("Sandbox with name {} already exists", belljar_types::escape_untrusted(name.as_bytes())));
    let _mine = match name {
        None => None,
        Some(name) => {
            let mine = state.names.speak_for(&who.project, name).ok_or_else(|| taken(name))?;
            if named(state, who, name).await?.is_some() {
                return Err(taken(name));
            }
            Some(mine)
        }
    };
    Ok(make().await?)
}

pub(super) async fn show(found: Found, links: Links) -> Json<SandboxDto> {
    Json(sandbox_dto(&found.sandbox, &links))
}

pub(super) async fn toolbox_url(_found: Found, links: Links) -> Json<serde_json::Value> {
    Json(serde_json::json!({ "url": links.toolbox }))
}

pub(super) async fn delete(State(state): State<DaytonaState>, Found { who, sandbox }: Found, links: Links) -> Answer<Json<SandboxDto>> {
    let ended = end(&state, &who, &sandbox).await?;
    Ok(Json(sandbox_dto(&ended, &links)))
}

async fn end(state: &DaytonaState, who: &Authenticated, sandbox: &Sandbox) -> Answer<Arc<Sandbox>> {
    let ended = state.service.kill(who, &sandbox.id).await?;
    state.known.forget(&sandbox.id);
    state.terminals.forget(&sandbox.id);
    Ok(ended)
}

/// Its processes end and its files stay; one that is deleted as soon as it stops is gone.
pub(super) async fn stop(State(state): State<DaytonaState>, Found { who, sandbox }: Found, links: Links) -> Answer<Json<SandboxDto>> {
    let stopped = match sandbox.on_timeout {
        OnTimeout::Kill => end(&state, &who, &sandbox).await?,
        OnTimeout::Pause | OnTimeout::PauseFiles => state.service.pause(&who, &sandbox.id, SnapshotKind::Filesystem).await?,
    };
    state.terminals.forget(&sandbox.id);
    Ok(Json(sandbox_dto(&stopped, &links)))
}

/// Its processes stand still, to go on when it is started.
pub(super) async fn pause(State(state): State<DaytonaState>, Found { who, sandbox }: Found, links: Links) -> Answer<Json<SandboxDto>> {
    if sandbox.state != SandboxState::Running {
        return Err(ApiError::bad_request("Sandbox must be in started state to pause"));
    }
    let paused = state.service.pause(&who, &sandbox.id, SnapshotKind::Memory).await?;
    Ok(Json(sandbox_dto(&paused, &links)))
}

/// It goes on, with as long a life before it as a new one has. One that runs is left as it is.
pub(super) async fn start(State(state): State<DaytonaState>, Found { who, sandbox }: Found, links: Links) -> Answer<Json<SandboxDto>> {
    let started = state.service.resume(&who, &sandbox.id, Some(state.service.config().max_lease)).await?;
    Ok(Json(sandbox_dto(&started, &links)))
}

/// Somebody uses it, if not through this server: its life and the time until it is stopped begin anew.
pub(super) async fn touch(State(state): State<DaytonaState>, Found { who, sandbox }: Found) -> Answer<()> {
    if sandbox.state == SandboxState::Running {
        drop(state.service.open(&who, &sandbox.id).await?);
        state.service.set_lease(&who, &sandbox.id, Lease::AtLeast(state.service.config().max_lease)).await?;
    }
    Ok(())
}
