//! All of E2B's routes: the control plane by path, sandboxes' own traffic by header or host name.

mod build_files;
mod builds;
mod control;
mod daemon;
mod download;
mod entries;
mod extract;
mod filesystem;
mod input;
mod interpreter;
mod lists;
mod metadata;
mod metrics;
mod pauses;
mod process;
mod sandboxes;
mod secrets;
mod signature;
mod snapshots;
mod tags;
mod templates;
mod unsupported;
mod upload;
mod volume_content;
mod volumes;
mod watch;
mod watchers;

use axum::Router;
use axum::middleware::from_fn_with_state;

use crate::state::E2bState;
use crate::traffic;

pub(crate) use daemon::{Daemon, Inside, Shown};
pub(crate) use interpreter::answer as answer_interpreter;
pub(crate) use signature::Signed;
pub(crate) use watchers::Watchers;

/// The control plane, to be merged with another front's router.
pub fn router(state: E2bState) -> Router {
    control::router(state)
}

/// Sends what belongs to a sandbox there, before any path is looked at. To be put around all routes, the fallback included.
pub fn attend(state: E2bState, router: Router) -> Router {
    let daemon = Daemon::new(&state);
    router.layer(from_fn_with_state((state, daemon), traffic::attend))
}
