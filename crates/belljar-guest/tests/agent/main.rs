//! The real agent as a process on this machine, driven by the real client: every verb, and what happens when things go wrong.
//!
//! Needs root, as in a sandbox; acts as `nobody` where an ordinary user is wanted.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod door;
mod files;
mod harness;
mod hostile;
mod keep;
mod malformed;
mod processes;
mod sudo;
mod system;
mod trees;
