//! Tools for agents, over the Model Context Protocol: commands, code, files, checkpoints and forks in a sandbox.
//!
//! ```text
//!   agent ── JSON-RPC on stdin and stdout ─┐
//!                                          ├─ server ── tools ── lodgings ── client ── HTTP ── a Belljar server, here or elsewhere
//!   agents ── requests of their own, HTTP ─┘                        └─ the sandbox, its forks and checkpoints
//! ```
//!
//! A client of the native API and nothing more: it works with the key of whoever asks, and what its tools can reach is less than what that key can. Only
//! sandboxes that this connection made or was given, or that have the name that was asked for, are touched, whatever a model was talked into asking for. What comes out of a sandbox is bounded, free of
//! terminal escapes and hidden characters, and said to be data.

mod error;
mod lodgings;
mod place;
mod server;
mod text;
mod tools;

pub use error::ServeError;
pub use place::{ComputerName, Computers, Place};
pub use server::{Door, Tools, Visitor, door, serve};
