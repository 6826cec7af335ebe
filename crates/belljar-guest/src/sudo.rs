//! `sudo` without set-user-ID programs: no sandbox has any that work.
//!
//! ```text
//!  user's shell ──▶ sudo (this program, no rights) ── command, environment, stdio ──▶ agent (root) ──▶ command as root
//!                       ▲                                                               │  who asks is told by the kernel
//!                       └──────────────── exit code ◀──────────────────────────────────┘
//! ```
//! The asker's terminal is not handed over: programs as another user get a terminal of their own, which `sudo` made and carries to the asker's. So a
//! command cannot type into the asker's shell after it has ended.

mod client;
mod options;
mod relay;
mod server;

pub(crate) use client::main;
pub(crate) use server::serve;
