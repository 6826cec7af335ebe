//! The guard, tried from outside: every case as root and as an ordinary user, and every attack also where it succeeds.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

mod attacks;
mod endings;
mod fixture;
mod network;
mod options;
mod processes;
mod protection;
mod streams;
mod terminal;
