//! Daytona's own SDKs, unmodified, against Belljar.
//!
//! ```text
//!  Authorization: Bearer bj_… ─┬ /daytona/api/…               ─► control plane ─► core's verbs
//!                              ├ /daytona/toolbox/{sandbox}/… ─► what Daytona has a daemon for ─► the sandbox's agent
//!  a token, or a public port ──┴ /daytona/preview/…, {port}-{sandbox}.{domain} ─► the program that listens there
//! ```
//!
//! The toolbox is spoken by the host: nothing of Daytona is in a sandbox. All of it stands below one prefix, so that it can be on the same origin as
//! other fronts ([`router`]); what comes under a port's own host name is told by that name ([`attend`]).

mod dto;
mod errors;
mod names;
mod routes;
mod state;
mod stream;
mod traffic;
mod translate;

pub use routes::{API_PATH, router};
pub use state::DaytonaState;
pub use traffic::attend;
