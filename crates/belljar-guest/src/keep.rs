//! `belljar-keep`: a program inside asks to have a file kept outside.
//!
//! ```text
//!  belljar-keep FILE ── path, name, type ──▶ agent: a wish ── Wishes ──▶ host: reads the file as whoever asked, keeps it
//!        ▲                                     │  who asks is told by the kernel       │
//!        └──────── id or refusal ◀────────────┴◀──────────── AnswerWish ◀────────────┘
//! ```
//! A wish stays until it is answered. Whoever listens next, after a pause or for another server, hears it again under the same name.

mod client;
mod server;
mod wishes;

pub(crate) use client::main;
pub(crate) use server::serve;
pub(crate) use wishes::Wishes;
