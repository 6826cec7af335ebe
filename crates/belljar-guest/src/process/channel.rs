//! Non-blocking pipe ends and terminals.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::OFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// One descriptor that is read or written without blocking the agent.
pub(crate) struct Channel(AsyncFd<OwnedFd>);

impl Channel {
    /// Takes a descriptor and makes it non-blocking.
    pub(crate) fn new(fd: OwnedFd, interest: Interest) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&fd)?;
        rustix::fs::fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?;
        belljar_linux::readiness::register(fd, interest).map(Self)
    }

    /// Reads what is there; 0 at the end. A terminal whose other side is gone has ended, whatever error it gives.
    pub(crate) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let result = self.0.async_io(Interest::READABLE, |fd| Ok(rustix::io::read(fd, &mut *buffer)?)).await;
        match result {
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => Ok(0),
            other => other,
        }
    }

    /// Writes as much as fits now, at least one byte.
    pub(crate) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.async_io(Interest::WRITABLE, |fd| Ok(rustix::io::write(fd, bytes)?)).await
    }

    pub(crate) fn fd(&self) -> rustix::fd::BorrowedFd<'_> {
        self.0.get_ref().as_fd()
    }
}
