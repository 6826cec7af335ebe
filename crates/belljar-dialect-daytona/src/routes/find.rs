//! Finding what a path names: a sandbox by its id or its name, and how this server was reached.

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use belljar_core::{Order, PageRequest, SandboxFilter};
use belljar_http::{Authenticated, origin};
use belljar_types::{Sandbox, SandboxId, SandboxState, escape_untrusted};

use super::TOOLBOX_PATH;
use crate::errors::ApiError;
use crate::state::DaytonaState;
use crate::translate::{Links, listed_states, name_filter};

/// The sandbox of the path, and who asks. What has ended is not there.
pub(super) struct Found {
    pub(super) who: Authenticated,
    pub(super) sandbox: Arc<Sandbox>,
}

impl FromRequestParts<DaytonaState> for Found {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &DaytonaState) -> Result<Self, ApiError> {
        let who = Authenticated::from_request_parts(parts, state).await?;
        let which = path_part(parts, state, "sandbox").await?;
        let sandbox = find(state, &who, &which).await?;
        belljar_http::about_sandbox(&parts.extensions, &sandbox.id);
        Ok(Self { who, sandbox })
    }
}

impl FromRequestParts<DaytonaState> for Links {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _state: &DaytonaState) -> Result<Self, ApiError> {
        let origin = origin(&parts.headers, &parts.extensions, &parts.uri);
        let origin = origin.ok_or_else(|| ApiError::bad_request("the request names no host"))?;
        Ok(Self { toolbox: format!("{origin}{TOOLBOX_PATH}") })
    }
}

/// A variable part of the path.
async fn path_part(parts: &mut Parts, state: &DaytonaState, name: &str) -> Result<String, ApiError> {
    let all = RawPathParams::from_request_parts(parts, state).await;
    let all = all.map_err(|_| ApiError::bad_request("the path is not UTF-8"))?;
    let part = all.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_owned());
    part.ok_or_else(|| ApiError::not_found("the path names no sandbox"))
}

/// A sandbox that lives, by its id or its name.
pub(super) async fn find(state: &DaytonaState, who: &Authenticated, which: &str) -> Result<Arc<Sandbox>, ApiError> {
    if let Ok(id) = which.parse::<SandboxId>()
        && let Ok(sandbox) = state.service.sandbox(who, &id).await
    {
        let gone = sandbox.state.has_ended() || sandbox.state == SandboxState::Stopping;
        return if gone { Err(ApiError::no_sandbox(which)) } else { Ok(sandbox) };
    }
    named(state, who, which).await?.ok_or_else(|| ApiError::no_sandbox(which))
}

/// The sandbox of that name, if there is one: the store looks for it.
pub(super) async fn named(state: &DaytonaState, who: &Authenticated, name: &str) -> Result<Option<Arc<Sandbox>>, ApiError> {
    let filter = SandboxFilter { states: listed_states(&[]), metadata: name_filter(name), template: None };
    let page = state.service.list(who, &filter, &PageRequest { order: Order::NewestFirst, after: None, limit: 1 }).await?;
    Ok(page.sandboxes.into_iter().next().map(Arc::new))
}

/// A number of the path.
pub(super) fn number<T: std::str::FromStr>(field: &str, text: &str) -> Result<T, ApiError> {
    text.parse().map_err(|_| ApiError::bad_request(format!("{field}: expected a number, got {}", escape_untrusted(text.as_bytes()))))
}
