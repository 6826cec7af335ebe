//! Signals as something to wait for beside other things.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Signals that no longer interrupt this process but are read from here.
pub struct SignalSource {
    descriptor: OwnedFd,
    mask_before: libc::sigset_t,
}

impl SignalSource {
    /// Takes these signals over. They stay blocked for this thread, and for copies of it.
    pub fn of(signals: &[i32]) -> io::Result<Self> {
        // SAFETY: all-zero bytes are a valid `sigset_t`.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        let mut mask_before = set;
        for signal in signals {
            // SAFETY: a valid set; a number that is no signal is refused.
            super::check(i64::from(unsafe { libc::sigaddset(&raw mut set, *signal) }))?;
        }
        // SAFETY: valid sets; the mask changed is this thread's own.
        let blocked = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut mask_before) };
        if blocked != 0 {
            return Err(io::Error::from_raw_os_error(blocked));
        }
        // SAFETY: a valid set; -1 asks for a new descriptor.
        let source = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        super::check(source.into())?;
        // SAFETY: the kernel has just given us this descriptor.
        Ok(Self { descriptor: unsafe { OwnedFd::from_raw_fd(source) }, mask_before })
    }

    /// Gives them back, in this process: what comes from now on does what it did before.
    pub fn release(&self) {
        // SAFETY: puts back this thread's mask as it was found.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.mask_before, std::ptr::null_mut()) };
    }

    /// The next signal that has come; `None` if none has.
    pub fn next(&self) -> io::Result<Option<i32>> {
        // SAFETY: all-zero bytes are a valid record.
        let mut record: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: a place of exactly this size to write to.
        let got = unsafe { libc::read(self.descriptor.as_raw_fd(), (&raw mut record).cast(), size) };
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
        self.descriptor.as_fd()
    }
}
