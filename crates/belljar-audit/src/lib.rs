//! What happened, in files that show every change: [`belljar_ports::Audit`] as a hash-chained, signed log per project.
//!
//! ```text
//!   record ──► queue ──► one writer: all that wait, per project ─► lines at the end of the segment ─► fdatasync ─► signed head ─► answers
//!
//!   audit/signing-key                         Ed25519, root's only, made at the first start
//!   audit/<project>/head                      the last number and hash, signed: what is cut off at the end is missed
//!   audit/<project>/00000000000000000001.jsonl   lines; each carries the SHA-256 of the one before
//! ```
//!
//! The format and why it is so: `docs/decisions/2026-11-15-audit-log.md`.

mod chain;
mod head;
mod key;
mod log;
mod ocsf;
mod project_log;
mod read;
mod segment;
mod tapes;
mod verify;
mod writer;

pub use chain::{hash_of, start_hash};
pub use head::check_signature;
pub use log::AuditLog;
pub use ocsf::to_ocsf;
pub use tapes::TapeDirectory;
pub use verify::verify_lines;
