//! What every front shares, the native API and vendors' dialects alike; it knows no route of any of them.
//!
//! ```text
//!  socket ─► serve (limits, TLS, h1/h2) ─► Front (request id, span, access log, panics, problems)
//!                                             ├─ {port}-{id}.{domain} ─► port proxy ─► program in the sandbox
//!                                             └─ a front's router ─► authenticate (key, rate) ─► its handlers
//! ```
//!
//! A front is an [`axum::Router`]; [`Front::around`] puts the shared parts around it and [`Server`] puts it on sockets.

mod access;
mod auth;
mod bucket;
mod extract;
mod flushes;
mod front;
mod guest_log;
mod hangup;
mod host_route;
mod leftover;
mod listen;
mod metrics;
mod port_token;
mod problem;
mod proxy;
mod request_id;
mod serve;
mod tls;

pub use auth::{Authenticated, Gate, KEY_HEADER, presented_key, unauthorized};
pub use bucket::{Buckets, Rate};
pub use extract::{JsonBody, OptionalJson, PathOf, QueryOf, Timed, content_type_is, read_limited};
pub use front::{Front, about_sandbox};
pub use guest_log::GuestLog;
pub use hangup::Hangup;
pub use host_route::{PortHost, port_host};
pub use listen::{Listen, ListenError, TlsFiles, check_listen};
pub use metrics::Metrics;
pub use port_token::{PortGrant, PortTokens, SECURE_TOKEN_COOKIE, TOKEN_COOKIE, TOKEN_HEADER, TOKEN_PARAMETER};
pub use problem::{Problem, ProblemBody};
pub use proxy::{Forwarded, forward};
pub use request_id::RequestId;
pub use serve::{Peer, ServeLimits, Server};
