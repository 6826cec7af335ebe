//! One command in a throw-away sandbox over the current directory, without a server: the local guard for coding agents.
//!
//! ```text
//! the guard                    decides what is shown, makes the first process, hands signals and the terminal on, tells how it ended
//!   │ a copy of itself in new user, process, mount, IPC, host name, cgroup and network namespaces
//! the first process            waits for its ids, builds a root, goes into it, drops every power, puts up Landlock and the filter;
//!   │                          from then on only reaps. It dies with the guard, and everything inside dies with it
//! the command                  with the caller's own standard streams, and no other descriptor
//! ```
//!
//! A sandbox that cannot be made is an error, never a run without one. Nothing here starts a helper program.

pub mod arguments;
mod environment;
mod errors;
mod inside;
mod limits;
mod line;
mod outside;
mod places;
mod plan;
mod protect;
mod sweep;
mod template;
mod terminal;
mod userns;
mod watch;

pub use arguments::Arguments;
pub use errors::GuardError;
pub use outside::{Outcome, run};
pub use plan::{Network, Request};
