//! The client's end of a connection. A stream in memory tells its other end only that nothing more comes, which a client that still listens says
//! too; this one tells that nobody is there any more.

use std::convert::Infallible;
use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::sync::oneshot;

/// The stream, until it is dropped.
pub(in crate::proxy) struct ClientEnd {
    stream: DuplexStream,
    /// Its being dropped is all that it ever says.
    _here: oneshot::Sender<Infallible>,
}

impl ClientEnd {
    /// With what waits for its being dropped.
    pub(super) fn new(stream: DuplexStream) -> (Self, impl Future<Output = ()>) {
        let (here, gone) = oneshot::channel();
        let gone = async { drop(gone.await) };
        (Self { stream, _here: here }, gone)
    }
}

impl AsyncRead for ClientEnd {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for ClientEnd {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
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
