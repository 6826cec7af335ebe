//! The engine on the real runsc, host and agent. Needs root, `make guest` and `scripts/install-runsc`.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "in a test a panic is the report")]

mod crash;
mod life;
mod limits;
mod machine;
mod rest;
mod speed;
