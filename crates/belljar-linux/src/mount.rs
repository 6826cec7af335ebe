//! Mounts that are attached nowhere yet.
//!
//! Everything a sandbox sees is mounted by the host into thin air first: no path on the host ever leads to it, nobody else can
//! open it, and if we die it is gone with our descriptors. The sandbox's first process only moves the finished pieces into its
//! own mount namespace.

mod bare;
mod identity;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

pub use bare::bare_namespace;
pub use identity::FileIdentity;
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

/// An overlay root, and what it is made of.
#[derive(Debug)]
pub struct Overlay<'a> {
    /// Read-only layers, lowest first.
    pub lower: &'a [BorrowedFd<'a>],
    /// A mount with the directories `upper` and `work` in its root; both must be seen through the same mount.
    pub writable: BorrowedFd<'a>,
    /// The host's id of whoever is root in the layers as they are mapped.
    pub root_id: u32,
}

/// What the overlay says its own source is: the only name of it that a sandbox sees.
const OVERLAY_SOURCE: &str = "belljar";
/// The most bytes that one option of the mount interface can hold.
const OPTION_MAX: usize = 255;

impl Overlay<'_> {
    /// Mounts it in the caller's user namespace.
    ///
    /// Layers are named by descriptor, so the options shown inside hold no path of the host. `volatile`: nothing is synced when
    /// it goes, because a sandbox that is gone needs none of it. `redirect_dir`: a directory of a lower layer can be renamed,
    /// which package managers do.
    pub fn mount(&self, restrictions: Restrictions) -> io::Result<OwnedFd> {
        let context = rustix::mount::fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
        rustix::mount::fsconfig_set_string(context.as_fd(), "source", OVERLAY_SOURCE)?;
        self.set_layers(context.as_fd())?;
        let writable = by_descriptor(self.writable);
        rustix::mount::fsconfig_set_string(context.as_fd(), "upperdir", format!("{writable}/upper"))?;
        rustix::mount::fsconfig_set_string(context.as_fd(), "workdir", format!("{writable}/work"))?;
        rustix::mount::fsconfig_set_string(context.as_fd(), "redirect_dir", "on")?;
        rustix::mount::fsconfig_set_flag(context.as_fd(), "volatile")?;
        let as_its_root = FileIdentity::assume(self.root_id)?;
        rustix::mount::fsconfig_create(context.as_fd())?;
        drop(as_its_root);
        let mount = rustix::mount::fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, restrictions.0)?;
        // An overlay that cannot use its work directory mounts all the same, but read-only.
        if rustix::fs::fstatvfs(&mount)?.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) {
            return Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "the kernel cannot write to these layers"));
        }
        Ok(mount)
    }

    /// One option per layer, top first; kernels before 6.5 know only the one option that lists them all.
    fn set_layers(&self, context: BorrowedFd<'_>) -> io::Result<()> {
        let mut one_by_one = self.lower.iter().rev();
        if let Some(top) = one_by_one.next() {
            match rustix::mount::fsconfig_set_string(context, "lowerdir+", by_descriptor(*top)) {
                Ok(()) => {}
                Err(rustix::io::Errno::INVAL) => return self.list_layers(context),
                Err(error) => return Err(error.into()),
            }
        }
        for layer in one_by_one {
            rustix::mount::fsconfig_set_string(context, "lowerdir+", by_descriptor(*layer))?;
        }
        Ok(())
    }

    fn list_layers(&self, context: BorrowedFd<'_>) -> io::Result<()> {
        let list = self.lower.iter().rev().map(|layer| by_descriptor(*layer)).collect::<Vec<_>>().join(":");
        if list.len() > OPTION_MAX {
            return Err(io::Error::new(io::ErrorKind::ArgumentListTooLong, "too many layers for a kernel before 6.5"));
        }
        Ok(rustix::mount::fsconfig_set_string(context, "lowerdir", list)?)
    }
}

fn by_descriptor(mount: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", mount.as_raw_fd())
}
