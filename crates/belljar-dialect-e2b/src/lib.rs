//! E2B's own SDKs, unmodified, against Belljar.
//!
//! ```text
//!  X-API-Key            ─► control plane (/sandboxes, /v2/sandboxes, /templates, …) ─► core's verbs
//!  E2b-Sandbox-Id/-Port ─┬ port 49983 ─► daemon protocol (process, filesystem, files) ─► the sandbox's agent
//!  {port}-{id}.{domain} ─┘ other port ─► the program that listens there
//! ```
//!
//! The daemon is spoken by the host: nothing of E2B is in a sandbox. [`around`] puts all of it on the same origin as another front, since
//! what belongs to a sandbox is told by its headers or its host name and not by its path.

mod dto;
mod errors;
mod known;
mod routes;
mod state;
mod stream;
mod tokens;
mod traffic;
mod translate;

pub use routes::around;
pub use state::E2bState;
pub use traffic::{ENVD_PORT, Target};
