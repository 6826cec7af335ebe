//! Messages to whoever wants to know, carried over HTTP.
//!
//! ```text
//!   core's outbox ─► Postman ─► sign (Standard Webhooks: id.time.body) ─► guard (public addresses only) ─► POST ─► 2xx, or again later
//! ```
//! An address is written by a client, so it is not trusted: names are resolved here and only addresses that are nobody's inside are connected
//! to, whatever the name says the next time; redirects are not followed; nothing of an answer but its status is looked at.

mod guard;
mod postman;
mod signature;

pub use postman::{Postman, PostmanError, Reach, use_tls};
pub use signature::SharedSecret;
