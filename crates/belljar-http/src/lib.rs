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
mod accounts;
mod auth;
mod bucket;
mod extract;
mod file_bytes;
mod flushes;
mod form;
mod front;
mod guest_log;
mod guest_paths;
mod hangup;
mod host_route;
mod known;
mod leftover;
mod listen;
mod metrics;
mod moment;
mod origin;
mod page_token;
mod port_token;
mod problem;
mod proxy;
mod request_id;
mod serve;
mod tls;
mod turns;

pub use accounts::{group_number, user_numbers};
pub use auth::{Authenticated, Gate, KEY_HEADER, presented_key, unauthorized};
pub use bucket::{Buckets, Rate};
pub use extract::{JsonBody, OptionalJson, PathOf, QueryOf, Timed, content_type_is, read_limited};
pub use file_bytes::at_most;
pub use form::{Form, FormContent, FormField};
pub use front::{Front, about_sandbox};
pub use guest_log::GuestLog;
pub use guest_paths::{base_name, clean_path, resolve_link};
pub use hangup::Hangup;
pub use host_route::{PortHost, port_host};
pub use known::{Known, acting_for};
pub use listen::{Listen, ListenError, TlsFiles, check_listen};
pub use metrics::Metrics;
pub use moment::moment;
pub use origin::origin;
pub use page_token::{page_cursor, page_token};
pub use port_token::{PortGrant, PortTokens, SECURE_TOKEN_COOKIE, TOKEN_COOKIE, TOKEN_HEADER, TOKEN_PARAMETER};
pub use problem::{Problem, ProblemBody};
pub use proxy::{Forwarded, forward};
pub use request_id::RequestId;
pub use serve::{Peer, ServeLimits, Server};
pub use turns::{Mine, Place, Turns, Whose};
