//! E2B's own SDKs, unmodified, against Belljar.
//!
//! ```text
//!  X-API-Key            ─► control plane (/sandboxes, /v2/sandboxes, /templates, …) ─► core's verbs
//!  E2b-Sandbox-Id/-Port ─┬ port 49983 ─► daemon protocol (process, filesystem, files) ─► the sandbox's agent
//!  {port}-{id}.{domain} ─┼ port 49999 ─► code interpreter ─► the sandbox's kernels, if its template has them
//!                        └ other port ─► the program that listens there
//! ```
//!
//! The daemon is spoken by the host: nothing of E2B is in a sandbox. All of it can be on the same origin as another front: [`router`] has paths
//! of its own, and what belongs to a sandbox is told by its headers or its host name, whatever its path ([`attend`]).

mod dto;
mod errors;
mod routes;
mod state;
mod stream;
mod tokens;
mod traffic;
mod translate;

pub use routes::{attend, router};
pub use state::E2bState;
pub use traffic::{ENVD_PORT, Target};
