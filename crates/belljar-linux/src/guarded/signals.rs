//! Signals as something to wait for beside other things.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Signals that no longer interrupt this process but are read from here.
#[derive(Debug)]
pub struct SignalSource(OwnedFd);

impl SignalSource {
    /// Takes these signals over. They stay blocked for this thread, and for copies of it.
    pub fn of(signals: &[i32]) -> io::Result<Self> {
        // SAFETY: all-zero bytes are a valid `sigset_t`.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        for signal in signals {
            // SAFETY: a valid set; a number that is no signal is refused.
            super::check(i64::from(unsafe { libc::sigaddset(&raw mut set, *signal) }))?;
        }
        // SAFETY: a valid set; the mask changed is this thread's own.
        let blocked = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
        if blocked != 0 {
            return Err(io::Error::from_raw_os_error(blocked));
        }
        // SAFETY: a valid set; -1 asks for a new descriptor.
        let source = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        super::check(source.into())?;
        // SAFETY: the kernel has just given us this descriptor.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(source) }))
    }

    /// The next signal that has come; `None` if none has.
    pub fn next(&self) -> io::Result<Option<i32>> {
        // SAFETY: all-zero bytes are a valid record.
        let mut record: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: a place of exactly this size to write to.
        let got = unsafe { libc::read(self.0.as_raw_fd(), (&raw mut record).cast(), size) };
        if got >= 0 {
            return Ok(i32::try_from(record.ssi_signo).ok().filter(|_| usize::try_from(got) == Ok(size)));
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            error => Err(error),
        }
    }
}

impl AsFd for SignalSource {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
