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

pub(super) async fn build() -> ApiError {
    ApiError::unsupported("building templates through E2B's API (use `belljar template`)")
}

pub(super) async fn tags() -> ApiError {
    ApiError::unsupported("tags of templates")
}

pub(super) async fn volumes() -> ApiError {
    ApiError::unsupported("volumes")
}

pub(super) async fn secrets() -> ApiError {
    ApiError::unsupported("secrets")
}
