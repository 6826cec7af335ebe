//! All of Daytona's routes, below one prefix: the control plane, the toolbox of each sandbox, and the ports of programs in them.

mod code_run;
mod config;
mod control;
mod download;
mod events;
mod files;
mod find;
mod git;
mod inside;
mod interpreter;
mod links;
mod lists;
mod preview;
mod process;
mod run;
mod sandboxes;
mod search;
mod session_commands;
mod session_logs;
mod sessions;
mod settings;
mod snapshots;
mod terminals;
mod toolbox;
mod unsupported;
mod upload;
mod volumes;

use std::sync::Arc;

use axum::extract::{RawPathParams, Request, State};
use axum::http::header;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::{RequestExt, Router};
use belljar_http::Authenticated;

use crate::errors::{ApiError, Source, shape};
use crate::state::DaytonaState;

pub(crate) use preview::to_program;
pub(crate) use terminals::Terminals;

/// Where the control plane is: what `DAYTONA_API_URL` names.
pub const API_PATH: &str = "/daytona/api";
const TOOLBOX_PATH: &str = "/daytona/toolbox";
const PREVIEW_PATH: &str = "/daytona/preview";

/// Everything, to be merged with other fronts' routers.
pub fn router(state: DaytonaState) -> Router {
    let locked = |router: Router<DaytonaState>| router.layer(from_fn_with_state(state.clone(), authenticate));
    // Around the prefix, so that a refusal names the path as the client wrote it.
    let below = |path: &str, router, source| Router::new().nest(path, router).layer(from_fn_with_state(source, shape));
    below(API_PATH, locked(control::router()).merge(config::router()), Source::Api)
        .merge(below(&format!("{TOOLBOX_PATH}/{{sandbox}}"), locked(toolbox::router()), Source::Daemon))
        .merge(below(PREVIEW_PATH, preview::router(), Source::Proxy))
        .with_state(state)
}

async fn authenticate(State(state): State<DaytonaState>, mut request: Request, next: Next) -> Response {
    let who = match state.gate.admit(request.headers()).await {
        Ok(who) => who,
        Err(problem) => match by_link(&state, &mut request).await {
            Some(who) => who,
            None => return ApiError::from(problem).into_response(),
        },
    };
    request.extensions_mut().insert(who);
    next.run(request).await
}

/// Whoever shows no key may have a link to a file.
async fn by_link(state: &DaytonaState, request: &mut Request) -> Option<Authenticated> {
    if request.headers().contains_key(header::AUTHORIZATION) {
        return None;
    }
    let (link, method) = (links::Link::of(request)?, request.method().clone());
    let parts = request.extract_parts::<RawPathParams>().await.ok()?;
    let which = parts.iter().find(|(name, _)| *name == "sandbox").map(|(_, value)| value.to_owned())?;
    links::admit(state, &which, &link, &method).await.map(|caller| Authenticated(Arc::new(caller)))
}
