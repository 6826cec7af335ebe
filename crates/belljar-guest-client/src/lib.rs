//! The host's side of the conversation with an agent: [`belljar_ports::Guest`] over any byte stream.
//!
//! The guest is hostile. Every frame is bounded before it is read, every answer is checked against what was asked, every wait ends, and
//! memory does not grow with what the guest sends. Whatever breaks a rule closes that connection and is told as
//! [`belljar_ports::GuestError::Misbehaved`].

mod client;
mod connect;

pub use client::GuestClient;
pub use connect::{AsyncStream, Connect, Credentials};
