//! What E2B has and this host does not do yet: said so, to whoever has the right to ask about that sandbox. Nothing pretends to have worked.

use axum::extract::State;
use belljar_http::Authenticated;

use super::extract::Which;
use super::sandboxes::live;
use crate::errors::ApiError;
use crate::state::E2bState;

pub(super) async fn fork(State(state): State<E2bState>, who: Authenticated, Which(id): Which) -> Result<(), ApiError> {
    live(&state, &who, &id).await?;
    Err(ApiError::unsupported("forking a sandbox"))
}

pub(super) async fn snapshot(State(state): State<E2bState>, who: Authenticated, Which(id): Which) -> Result<(), ApiError> {
    live(&state, &who, &id).await?;
    Err(ApiError::unsupported("taking a snapshot of a sandbox"))
}

pub(super) async fn snapshots() -> ApiError {
    ApiError::unsupported("taking snapshots")
}

pub(super) async fn dockerfile() -> ApiError {
    ApiError::unsupported(
        "building a template by pushing an image (the first version of E2B's builds; newer SDKs and CLIs send steps, which is supported)",
    )
}

pub(super) async fn volumes() -> ApiError {
    ApiError::unsupported("volumes")
}

pub(super) async fn secrets() -> ApiError {
    ApiError::unsupported("secrets")
}
