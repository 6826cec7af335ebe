//! The host's side of the conversation with an agent: [`belljar_ports::Guest`] over any byte stream.
//!
//! The guest is hostile. Every frame is bounded before it is read, every answer is checked against what was asked, every wait ends, and
//! memory does not grow with what the guest sends. Whatever breaks a rule closes that connection and is told as
//! [`belljar_ports::GuestError::Misbehaved`].
//!
//! ```text
//!  GuestClient ── Pool ── idle connections (both sides have proved themselves)
//!       │
//!       └─ Exchange: one call on one connection ─┬─ one answer
//!                                                ├─ stream: a task that reads, checks, keeps alive
//!                                                ├─ upload: content that goes up
//!                                                └─ tunnel: both ways
//! ```

mod attributes;
mod client;
mod collect;
mod connect;
mod error;
mod exchange;
mod judged;
mod pool;
mod stream;
mod tunnel;
mod upload;

pub use attributes::OutsideAttributes;
pub use belljar_guest_line::AsyncStream;
pub use belljar_guest_line::Patience;
pub use client::GuestClient;
pub use connect::{Connect, Credentials};
pub use judged::{JudgedGuest, OomLedger};
