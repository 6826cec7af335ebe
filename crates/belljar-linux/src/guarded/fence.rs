//! Landlock around one tree: whatever is not below its root is out of reach, also by a descriptor that was brought along.
//!
//! A namespace hides what is outside, but `/proc/self/fd` is a door back in: a file that the caller gave as standard input for reading could
//! be opened again through it for writing. The fence allows each such file exactly what it was given for.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::landlock;

const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const MAKE_CHARACTER_DEVICE: u64 = 1 << 6;
const MAKE_BLOCK_DEVICE: u64 = 1 << 11;
const TRUNCATE: u64 = 1 << 14;
const DEVICE_REQUESTS: u64 = 1 << 15;
const SCOPE_ABSTRACT_SOCKETS: u64 = 1 << 0;
const SCOPE_SIGNALS: u64 = 1 << 1;
const RULE_PATH_BENEATH: u32 = 1;
/// Without `REFER`, which came with the second interface, every rename across directories would fail.
const OLDEST_USABLE: u32 = 2;
const TRUNCATE_SINCE: u32 = 3;
const DEVICE_REQUESTS_SINCE: u32 = 5;
const SCOPES_SINCE: u32 = 6;

#[repr(C)]
struct RulesetAttributes {
    files: u64,
    network: u64,
    scoped: u64,
}

#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: i32,
}

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
pub struct Fence {
    ruleset: OwnedFd,
    handled: u64,
}

impl Fence {
    /// Around everything below `root`. `None` if the kernel has no Landlock, or one too old to be used.
    pub fn around(root: BorrowedFd<'_>) -> io::Result<Option<Self>> {
        let version = landlock::version();
        if version < OLDEST_USABLE {
            return Ok(None);
        }
        let mut handled = (1 << 14) - 1;
        handled |= if version >= TRUNCATE_SINCE { TRUNCATE } else { 0 };
        handled |= if version >= DEVICE_REQUESTS_SINCE { DEVICE_REQUESTS } else { 0 };
        let scoped = if version >= SCOPES_SINCE { SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS } else { 0 };
        let attributes = RulesetAttributes { files: handled, network: 0, scoped };
        // SAFETY: laid out as the kernel's `struct landlock_ruleset_attr`; older kernels take what they do not know if it is zero.
        let ruleset = unsafe {
            libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::from_ref(&attributes), size_of::<RulesetAttributes>(), 0u32)
        };
        let ruleset = i32::try_from(ruleset).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: the kernel has just given us this descriptor, and nobody else knows of it.
        let fence = Self { ruleset: unsafe { OwnedFd::from_raw_fd(ruleset) }, handled };
        fence.allow(root, handled & !(MAKE_CHARACTER_DEVICE | MAKE_BLOCK_DEVICE))?;
        Ok(Some(fence))
    }

    /// Lets this one file be opened again.
    pub fn let_reopen(&self, file: BorrowedFd<'_>, how: Reopen) -> io::Result<()> {
        let reading = if how.read { READ_FILE } else { 0 };
        let writing = if how.write { WRITE_FILE | TRUNCATE } else { 0 };
        self.allow(file, (reading | writing | DEVICE_REQUESTS) & self.handled)
    }

    fn allow(&self, what: BorrowedFd<'_>, allowed: u64) -> io::Result<()> {
        let rule = PathBeneath { allowed, parent: what.as_raw_fd() };
        // SAFETY: laid out as the kernel's `struct landlock_path_beneath_attr`, and both descriptors are open.
        let added = unsafe {
            libc::syscall(libc::SYS_landlock_add_rule, self.ruleset.as_raw_fd(), RULE_PATH_BENEATH, std::ptr::from_ref(&rule), 0u32)
        };
        super::check(added)
    }

    /// Puts it up around this process and all it will start. Needs [`super::drop_all_powers`] first.
    pub fn put_up(self) -> io::Result<()> {
        // SAFETY: an open descriptor and no flags.
        super::check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, self.ruleset.as_raw_fd(), 0u32) })
    }
}
