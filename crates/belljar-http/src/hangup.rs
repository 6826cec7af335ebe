//! Cutting a connection instead of ending it. A body that merely stops looks to some clients like a server that made a mistake; a reset tells
//! them that what they talked to is gone.

use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// In the extensions of requests that have their connection to themselves, as those of HTTP/1.1 do.
#[derive(Debug, Clone, Default)]
pub struct Hangup(Arc<AtomicBool>);

impl Hangup {
    /// From now on, the end of the connection is a reset. The connection ends when the answer's body gives an error.
    pub fn reset(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_asked(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A socket that is reset when it is dropped, if that was asked for.
pub(crate) struct Resettable {
    stream: TcpStream,
    hangup: Hangup,
}

impl Resettable {
    pub(crate) fn new(stream: TcpStream, hangup: Hangup) -> Self {
        Self { stream, hangup }
    }
}

impl Drop for Resettable {
    fn drop(&mut self) {
        if self.hangup.is_asked() {
            // A socket that refuses this is closed in the ordinary way.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Resettable {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Resettable {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        // An end that was sent cannot be made a reset any more.
        if self.hangup.is_asked() { Poll::Ready(Ok(())) } else { Pin::new(&mut self.stream).poll_shutdown(context) }
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, pieces: &[IoSlice<'_>]) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
