//! Taking requests apart, with refusals in E2B's shape.

use std::convert::Infallible;

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::header;
use axum::http::request::Parts;
use belljar_http::read_limited;
use belljar_types::SandboxId;
use serde::de::DeserializeOwned;

use crate::errors::ApiError;
use crate::state::E2bState;

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

/// The domain below which the client finds sandboxes' ports: with the port it came in by, if it came by that domain.
pub(super) struct Domain(pub(super) Option<String>);

impl FromRequestParts<E2bState> for Domain {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, state: &E2bState) -> Result<Self, Infallible> {
        let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let host = host.or_else(|| parts.uri.authority().map(axum::http::uri::Authority::as_str));
        Ok(Self(state.domain.as_deref().map(|domain| told_domain(domain, host.unwrap_or_default()))))
    }
}

fn told_domain(domain: &str, host: &str) -> String {
    match host.rsplit_once(':') {
        Some((name, port)) if name == domain || name.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')) => {
            format!("{domain}:{port}")
        }
        _ => domain.to_owned(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_told_the_port_they_came_in_by() {
        for (host, told) in [
            ("api.boxes.example:8443", "boxes.example:8443"),
            ("boxes.example:8443", "boxes.example:8443"),
            ("api.boxes.example", "boxes.example"),
            ("127.0.0.1:7070", "boxes.example"),
            ("evilboxes.example:1", "boxes.example"),
        ] {
            assert_eq!(told_domain("boxes.example", host), told, "{host}");
        }
    }
}
