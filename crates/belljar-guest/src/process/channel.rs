//! Non-blocking pipe ends, terminals and local sockets.
//!
//! What is registered for readiness is a second descriptor of the same file, so that it can be taken back for a while: see [`crate::quiet`].

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use rustix::fs::OFlags;
use rustix::net::SocketFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::quiet::{self, Registration};

/// One descriptor that is read or written without blocking the agent.
pub(crate) struct Channel {
    fd: OwnedFd,
    interest: Interest,
    registration: Registration,
}

impl Channel {
    /// Takes a descriptor and makes it non-blocking.
    pub(crate) fn new(fd: OwnedFd, interest: Interest) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&fd)?;
        rustix::fs::fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?;
        let registration = Rc::new(RefCell::new(None));
        quiet::remember(&registration);
        let channel = Self { fd, interest, registration };
        channel.registered()?;
        Ok(channel)
    }

    /// Reads what is there; 0 at the end. A terminal whose other side is gone has ended, whatever error it gives.
    pub(crate) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.when_ready(Interest::READABLE, |fd| Ok(rustix::io::read(fd, &mut *buffer)?)).await {
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => Ok(0),
            other => other,
        }
    }

    /// Writes as much as fits now, at least one byte.
    pub(crate) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.when_ready(Interest::WRITABLE, |fd| Ok(rustix::io::write(fd, bytes)?)).await
    }

    /// The next connection to a socket that listens.
    pub(crate) async fn accept(&self) -> io::Result<OwnedFd> {
        self.when_ready(Interest::READABLE, |fd| Ok(rustix::net::accept_with(fd, SocketFlags::CLOEXEC)?)).await
    }

    pub(crate) fn fd(&self) -> rustix::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Does `work` when the descriptor is ready for it.
    pub(crate) async fn when_ready<T>(&self, interest: Interest, mut work: impl FnMut(&OwnedFd) -> io::Result<T>) -> io::Result<T> {
        loop {
            quiet::over().await;
            let registered = self.registered()?;
            tokio::select! {
                biased;
                () = quiet::begun() => {}
                done = registered.async_io(interest, &mut work) => return done,
            }
        }
    }

    fn registered(&self) -> io::Result<Rc<AsyncFd<OwnedFd>>> {
        if let Some(registered) = &*self.registration.borrow() {
            return Ok(Rc::clone(registered));
        }
        let second = rustix::io::fcntl_dupfd_cloexec(&self.fd, 3)?;
        let registered = Rc::new(belljar_linux::readiness::register(second, self.interest)?);
        *self.registration.borrow_mut() = Some(Rc::clone(&registered));
        Ok(registered)
    }
}
