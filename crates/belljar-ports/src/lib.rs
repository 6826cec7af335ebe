//! The contracts that core asks of its adapters, and nothing else.
//!
//! ```text
//!        core                       knows only these traits
//!     ────┼──────────────
//!      Runtime ── makes, finds, freezes and removes sandboxes          (one per engine)
//!      Guest   ── acts inside one running sandbox                      (one per agent connection)
//! ```
//!
//! An ability that an engine lacks is an answer of [`Capabilities`], given before any work starts, and
//! [`RuntimeError::Unsupported`] if it is asked for all the same; never a half-done attempt.

mod capabilities;
mod guest;
mod runtime;

pub use capabilities::{Capabilities, MemoryState, OomScope};
pub use guest::{ByteStream, EventStream, FileContent, Guest, GuestConnection, GuestError, GuestInfo, OutputStream, SearchStream};
pub use runtime::{Found, Presence, Runtime, RuntimeError, SnapshotKind, SnapshotRecord};
