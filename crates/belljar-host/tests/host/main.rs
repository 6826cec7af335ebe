//! The host on a real kernel: real pool, real namespaces, real cgroups. Needs root.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bench;
mod capacity;
mod crash;
mod lifecycle;
mod network;
mod open_network;
mod remains;
mod scene;
mod tools;
mod volume_crash;
mod volumes;
