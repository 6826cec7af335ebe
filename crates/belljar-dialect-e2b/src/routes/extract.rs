//! Taking requests apart, with refusals in E2B's shape.

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use belljar_http::read_limited;
use belljar_types::SandboxId;
use serde::de::DeserializeOwned;

use crate::errors::ApiError;

const LARGEST_BODY: usize = 1 << 20;

/// A JSON body; none at all is an empty object.
pub(super) struct Given<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Given<T> {
    type Rejection = ApiError;
    async fn from_request(request: Request, _state: &S) -> Result<Self, ApiError> {
        let bytes = read_limited(request.into_body(), LARGEST_BODY).await?;
        let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        let value = serde_json::from_slice(bytes);
        value.map(Self).map_err(|error| ApiError::bad_request(format!("Error when parsing request: {error}")))
    }
}

/// The query, taken apart.
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let query = axum::extract::Query::<T>::try_from_uri(&parts.uri);
        query.map(|query| Self(query.0)).map_err(|rejection| ApiError::bad_request(rejection.body_text()))
    }
}

/// The sandbox of the path. What is no id is one that does not exist.
pub(super) struct Which(pub(super) SandboxId);

impl<S: Send + Sync> FromRequestParts<S> for Which {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Path(text) =
            Path::<String>::from_request_parts(parts, state).await.map_err(|rejection| ApiError::bad_request(rejection.body_text()))?;
        // Older clients write `{id}-{client}`.
        let id = text.split_once('-').map_or(text.as_str(), |(id, _client)| id);
        let id: SandboxId = id.parse().map_err(|_| ApiError::no_sandbox(&text))?;
        belljar_http::about_sandbox(&parts.extensions, &id);
        Ok(Self(id))
    }
}
