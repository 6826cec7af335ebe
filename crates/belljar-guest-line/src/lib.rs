//! Frames over a byte stream, with heartbeats. Host and agent talk through the same code, so that they cannot disagree about who has to
//! speak when.
//!
//! [`Line`] does three things whenever it is polled, whatever its owner waits for: it sends what is queued, it reads ahead by at most one frame, and it
//! keeps the peace: a heartbeat when this side has been silent too long, an error when the other one has.

mod line;

use tokio::io::{AsyncRead, AsyncWrite};

pub use line::{Carried, Driven, Line, LineError, Patience};

/// A two-way byte stream, whatever carries it.
pub trait AsyncStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + ?Sized> AsyncStream for T {}
