//! Makes real containers on a real host and looks at them from both sides. Needs root.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that panics says where, and prints what it measured")]

mod agent;
mod agentless;
mod world;
