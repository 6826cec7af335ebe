//! Mounts that are attached nowhere yet.
//!
//! Everything a sandbox sees is mounted by the host into thin air first: no path on the host ever leads to it, nobody else can
//! open it, and if we die it is gone with our descriptors. The sandbox's first process only moves the finished pieces into its
//! own mount namespace.

mod bare;
mod identity;
mod overlay;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

pub use bare::bare_namespace;
pub use identity::FileIdentity;
pub use overlay::{LAYERS_MAX, Overlay};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, OpenTreeFlags};

/// How a mount restricts what lies below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restrictions(MountAttrFlags);

impl Restrictions {
    /// No restriction.
    pub const NONE: Self = Self(MountAttrFlags::empty());
    /// Nothing can be written.
    pub const READ_ONLY: Self = Self(MountAttrFlags::MOUNT_ATTR_RDONLY);
    /// Set-user-ID bits and file capabilities mean nothing.
    pub const NO_SETUID: Self = Self(MountAttrFlags::MOUNT_ATTR_NOSUID);
    /// Device nodes cannot be opened.
    pub const NO_DEVICES: Self = Self(MountAttrFlags::MOUNT_ATTR_NODEV);
    /// Programs cannot be run.
    pub const NO_EXEC: Self = Self(MountAttrFlags::MOUNT_ATTR_NOEXEC);

    /// Both.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0.union(other.0))
    }

    pub(crate) fn bits(self) -> u64 {
        u64::from(self.0.bits())
    }
}

/// A private copy of the mount at `path`, from that directory down.
pub fn copy_tree(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::mount::open_tree(rustix::fs::CWD, path, OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC)?)
}

#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;

/// Shows a detached mount with the owners that `users` maps to, and with these restrictions.
pub fn map_owners(mount: BorrowedFd<'_>, users: BorrowedFd<'_>, restrictions: Restrictions) -> io::Result<()> {
    let attributes = MountAttributes {
        set: MOUNT_ATTR_IDMAP | u64::from(restrictions.0.bits()),
        clear: 0,
        propagation: 0,
        user_namespace: u64::try_from(users.as_raw_fd()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?,
    };
    set_attributes(mount, &attributes)
}

/// Adds restrictions to a detached mount.
pub fn restrict(mount: BorrowedFd<'_>, restrictions: Restrictions) -> io::Result<()> {
    set_attributes(mount, &MountAttributes { set: u64::from(restrictions.0.bits()), clear: 0, propagation: 0, user_namespace: 0 })
}

fn set_attributes(mount: BorrowedFd<'_>, attributes: &MountAttributes) -> io::Result<()> {
    // SAFETY: the path is a static empty string, `attributes` is laid out as the kernel's `struct mount_attr` and lives through
    // the call, and the size given is its own.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            std::ptr::from_ref(attributes),
            size_of::<MountAttributes>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A filesystem in memory, of at most this many bytes and files. Its root belongs to whoever this thread is to files.
pub fn memory_filesystem(bytes: u64, files: u64, mode: u32, restrictions: Restrictions) -> io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_string(context.as_fd(), "size", bytes.to_string())?;
    rustix::mount::fsconfig_set_string(context.as_fd(), "nr_inodes", files.to_string())?;
    rustix::mount::fsconfig_set_string(context.as_fd(), "mode", format!("{mode:o}"))?;
    rustix::mount::fsconfig_create(context.as_fd())?;
    Ok(rustix::mount::fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, restrictions.0)?)
}
