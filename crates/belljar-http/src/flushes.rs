//! How often all that a connection held was given to the kernel. A body that ends badly ends its connection at once, with whatever hyper still holds
//! for it; who ends a body and wants to be sure that the part before was sent waits for this to count on.

use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

/// In the extensions of every request: the flushes of the connection it came over.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flushes(Arc<Told>);

#[derive(Debug, Default)]
struct Told {
    count: AtomicU64,
    another: Notify,
}

impl Flushes {
    pub(crate) fn count(&self) -> u64 {
        self.0.count.load(Ordering::Acquire)
    }

    /// Returns once there were more flushes than these.
    pub(crate) async fn beyond(self, count: u64) {
        loop {
            // Asked for before the look, so that none is missed between.
            let another = self.0.another.notified();
            if self.count() > count {
                return;
            }
            another.await;
        }
    }

    fn tell(&self) {
        self.0.count.fetch_add(1, Ordering::Release);
        self.0.another.notify_waiters();
    }
}

/// A stream whose flushes are counted.
pub(crate) struct Counted<S> {
    stream: S,
    flushes: Flushes,
}

impl<S> Counted<S> {
    pub(crate) fn new(stream: S, flushes: Flushes) -> Self {
        Self { stream, flushes }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let flushed = ready!(Pin::new(&mut self.stream).poll_flush(context));
        self.flushes.tell();
        Poll::Ready(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, pieces: &[IoSlice<'_>]) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
