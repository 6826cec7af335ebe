//! Mounts together with all that is mounted below them.
//!
//! Whoever is not root on the host may not take one mount without those below it: something may have been covered on purpose.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::CWD;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};

use crate::mount::Restrictions;

const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;

#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// A private, detached copy of what `place` is, with everything mounted below it. A descriptor cannot be exchanged under our hands as a
/// path can.
pub fn copy_whole_tree(place: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE | OpenTreeFlags::AT_EMPTY_PATH;
    Ok(open_tree(place, c"", flags)?)
}

/// Attaches a detached mount on `place`, or on the path `at` below it, whose last part is not followed if it is a link.
pub fn attach(mount: BorrowedFd<'_>, place: Option<BorrowedFd<'_>>, at: &Path) -> io::Result<()> {
    let mut flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    if at.as_os_str().is_empty() {
        flags |= MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    }
    Ok(move_mount(mount, c"", place.unwrap_or(CWD), at, flags)?)
}

/// Adds restrictions to a mount and all below it.
pub fn restrict_tree(mount: BorrowedFd<'_>, restrictions: Restrictions) -> io::Result<()> {
    set_attributes(mount, &MountAttributes { set: restrictions.bits(), clear: 0, propagation: 0, user_namespace: 0 })
}

/// Shows a detached mount and all below it with the owners that `users` maps to.
pub fn map_owners_of_tree(mount: BorrowedFd<'_>, users: BorrowedFd<'_>) -> io::Result<()> {
    let user_namespace = u64::try_from(users.as_raw_fd()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    set_attributes(mount, &MountAttributes { set: MOUNT_ATTR_IDMAP, clear: 0, propagation: 0, user_namespace })
}

fn set_attributes(mount: BorrowedFd<'_>, attributes: &MountAttributes) -> io::Result<()> {
    // SAFETY: the path is a static empty string, `attributes` is laid out as the kernel's `struct mount_attr` and lives through the call,
    // and the size given is its own.
    super::check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
            std::ptr::from_ref(attributes),
            size_of::<MountAttributes>(),
        )
    })
}
