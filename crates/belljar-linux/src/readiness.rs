//! Waiting for a descriptor without blocking a thread.
//!
//! Tokio asks for `unsafe` because a registered object could swap its descriptor for another one. [`OwnedFd`] cannot.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers a descriptor with the runtime that this is called in.
pub fn register(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` stays open and keeps its number until it is dropped, and `AsyncFd` gives out only shared references to
    // it or gives it back after it was unregistered.
    unsafe { AsyncFd::register_with_interest(fd, interest) }.map_err(io::Error::from)
}
