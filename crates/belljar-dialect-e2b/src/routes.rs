//! All of E2B's routes: the control plane by path, sandboxes' own traffic by header or host name.

mod control;
mod daemon;
mod download;
mod entries;
mod extract;
mod filesystem;
mod input;
mod lists;
mod metadata;
mod metrics;
mod process;
mod sandboxes;
mod signature;
mod templates;
mod unsupported;
mod upload;
mod watch;
mod watchers;

use axum::Router;
use axum::middleware::from_fn_with_state;

use crate::state::E2bState;
use crate::traffic;

pub(crate) use daemon::{Daemon, Inside, Shown};
pub(crate) use input::Turns;
pub(crate) use signature::Signed;
pub(crate) use watchers::Watchers;

/// Puts E2B beside another front on one origin. What belongs to a sandbox goes there before any path is looked at.
pub fn around(state: E2bState, other: Router) -> Router {
    let daemon = Daemon::new(&state);
    other.merge(control::router(state.clone())).layer(from_fn_with_state((state, daemon), traffic::attend))
}
