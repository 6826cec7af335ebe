//! The command line as people and programs use it: the real program, a real server, real sandboxes, a real terminal.
//!
//! One program for all of it: the server is started once and shared, and only who restarts it has it alone.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

#[path = "cli/basics.rs"]
mod basics;
#[path = "cli/cp.rs"]
mod cp;
#[path = "cli/exec.rs"]
mod exec;
#[path = "cli/failures.rs"]
mod failures;
#[path = "cli/ports.rs"]
mod ports;
#[path = "cli/restart.rs"]
mod restart;
#[path = "cli/scene.rs"]
mod scene;
#[path = "cli/shell.rs"]
mod shell;
#[path = "cli/snapshots.rs"]
mod snapshots;
#[path = "cli/terminal.rs"]
mod terminal;
