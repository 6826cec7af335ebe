//! Landlock as a second fence: what it forbids stays forbidden even if a namespace, a mount option or a filter has a hole.
//!
//! It forbids making device nodes anywhere, every change of mounts (which comes with restricting files at all), tracing and
//! signalling processes outside, and abstract sockets of others. It lets renames across directories through (`REFER`), or no
//! package manager would work.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

pub(crate) const MAKE_CHARACTER_DEVICE: u64 = 1 << 6;
pub(crate) const MAKE_BLOCK_DEVICE: u64 = 1 << 11;
const REFER: u64 = 1 << 13;
const SCOPE_ABSTRACT_SOCKETS: u64 = 1 << 0;
const SCOPE_SIGNALS: u64 = 1 << 1;
const CREATE_RULESET_VERSION: u32 = 1;
const RULE_PATH_BENEATH: u32 = 1;
/// `REFER` came with the second interface; without it every rename across directories would fail.
const OLDEST_USABLE: u32 = 2;
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

/// The interface version this kernel offers; 0 when Landlock is not there.
pub fn version() -> u32 {
    // SAFETY: with this flag the kernel takes no pointer and only answers.
    let answer = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0usize, CREATE_RULESET_VERSION) };
    u32::try_from(answer).unwrap_or(0)
}

/// The fence for a sandbox whose root directory is `root`. `None` if the kernel has no Landlock, or one too old to be used.
pub fn fence(root: BorrowedFd<'_>) -> io::Result<Option<OwnedFd>> {
    let Some(ruleset) = Ruleset::forbidding(|_| REFER | MAKE_CHARACTER_DEVICE | MAKE_BLOCK_DEVICE)? else { return Ok(None) };
    ruleset.allow(root, REFER)?;
    Ok(Some(ruleset.descriptor))
}

/// What is forbidden but for what rules allow; binds nobody yet. Signals and abstract sockets of others are out of reach where the kernel can do that.
#[derive(Debug)]
pub(crate) struct Ruleset {
    pub(crate) descriptor: OwnedFd,
    /// The uses of files that it forbids.
    pub(crate) files: u64,
}

impl Ruleset {
    /// Forbids the uses of files that `files` names for this kernel's version. `None` if the kernel has no Landlock, or one too old to be used.
    pub(crate) fn forbidding(files: impl FnOnce(u32) -> u64) -> io::Result<Option<Self>> {
        let version = version();
        if version < OLDEST_USABLE {
            return Ok(None);
        }
        let scoped = if version >= SCOPES_SINCE { SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS } else { 0 };
        let attributes = RulesetAttributes { files: files(version), network: 0, scoped };
        // Older kernels refuse fields they do not know unless those are zero, which they then are.
        // SAFETY: `attributes` is laid out as the kernel's `struct landlock_ruleset_attr` and lives through the call.
        let descriptor = unsafe {
            libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::from_ref(&attributes), size_of::<RulesetAttributes>(), 0u32)
        };
        let descriptor = i32::try_from(descriptor).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: the kernel has just given us this descriptor, and nobody else knows of it.
        Ok(Some(Self { descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) }, files: attributes.files }))
    }

    /// Allows these uses of `what` and of all below it.
    pub(crate) fn allow(&self, what: BorrowedFd<'_>, uses: u64) -> io::Result<()> {
        let rule = PathBeneath { allowed: uses, parent: what.as_raw_fd() };
        // SAFETY: `rule` is laid out as the kernel's `struct landlock_path_beneath_attr`, and both descriptors are open.
        let added = unsafe {
            libc::syscall(libc::SYS_landlock_add_rule, self.descriptor.as_raw_fd(), RULE_PATH_BENEATH, std::ptr::from_ref(&rule), 0u32)
        };
        if added == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}
