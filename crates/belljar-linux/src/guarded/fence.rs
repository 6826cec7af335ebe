//! Landlock around one tree: whatever is not below its root is out of reach, also by a descriptor that was brought along.
//!
//! A namespace hides what is outside, but `/proc/self/fd` is a door back in: a file that the caller gave as standard input for reading could
//! be opened again through it for writing. The fence allows each such file exactly what it was given for.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::landlock::{MAKE_BLOCK_DEVICE, MAKE_CHARACTER_DEVICE, Ruleset};

const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const TRUNCATE: u64 = 1 << 14;
const DEVICE_REQUESTS: u64 = 1 << 15;
const ALL_OF_THE_SECOND_INTERFACE: u64 = (1 << 14) - 1;
const TRUNCATE_SINCE: u32 = 3;
const DEVICE_REQUESTS_SINCE: u32 = 5;

/// What a file outside may be opened for again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reopen {
    /// Reading.
    pub read: bool,
    /// Writing.
    pub write: bool,
}

/// A fence that is not up yet.
#[derive(Debug)]
pub struct Fence(Ruleset);

impl Fence {
    /// Around everything below `root`. `None` if the kernel has no Landlock, or one too old to be used.
    pub fn around(root: BorrowedFd<'_>) -> io::Result<Option<Self>> {
        let every_use = |version| {
            let truncate = if version >= TRUNCATE_SINCE { TRUNCATE } else { 0 };
            let device_requests = if version >= DEVICE_REQUESTS_SINCE { DEVICE_REQUESTS } else { 0 };
            ALL_OF_THE_SECOND_INTERFACE | truncate | device_requests
        };
        let Some(ruleset) = Ruleset::forbidding(every_use)? else { return Ok(None) };
        ruleset.allow(root, ruleset.files & !(MAKE_CHARACTER_DEVICE | MAKE_BLOCK_DEVICE))?;
        Ok(Some(Self(ruleset)))
    }

    /// Lets this one file be opened again.
    pub fn let_reopen(&self, file: BorrowedFd<'_>, how: Reopen) -> io::Result<()> {
        let reading = if how.read { READ_FILE } else { 0 };
        let writing = if how.write { WRITE_FILE | TRUNCATE } else { 0 };
        self.0.allow(file, (reading | writing | DEVICE_REQUESTS) & self.0.files)
    }

    /// Puts it up around this process and all it will start. Needs [`super::drop_all_powers`] first.
    pub fn put_up(self) -> io::Result<()> {
        // SAFETY: an open descriptor and no flags.
        super::check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, self.0.descriptor.as_raw_fd(), 0u32) })
    }
}
