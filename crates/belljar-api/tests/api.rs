//! The API over a real socket, in front of a real service with real sandboxes of the container class.
//!
//! One program for all of it: it links the whole server, which takes longer than the tests.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

#[path = "api/audit.rs"]
mod audit;
#[path = "api/code.rs"]
mod code;
#[path = "api/document.rs"]
mod document;
#[path = "api/files.rs"]
mod files;
#[path = "api/limits.rs"]
mod limits;
#[path = "api/ports.rs"]
mod ports;
#[path = "api/processes.rs"]
mod processes;
#[path = "api/sandboxes.rs"]
mod sandboxes;
#[path = "api/scene.rs"]
mod scene;
#[path = "api/snapshots.rs"]
mod snapshots;
#[path = "api/sockets.rs"]
mod sockets;
#[path = "api/strangers.rs"]
mod strangers;
#[path = "api/volumes.rs"]
mod volumes;
