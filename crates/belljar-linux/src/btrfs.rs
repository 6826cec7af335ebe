//! Btrfs subvolumes with simple quotas: the disk limit of a sandbox.
//!
//! A subvolume is made, limited, renamed and dropped in constant time, its quota counts metadata too and binds root as well, and every
//! distribution's kernel has it. The requests go to an open directory of the filesystem; none of them walks a path.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{Mode, OFlags};

const MAGIC: u8 = 0x94;
const SYNC: libc::Ioctl = request(0, 8, 0);
const SUBVOL_CREATE: libc::Ioctl = request(WRITE, 14, 4096);
const SNAP_DESTROY: libc::Ioctl = request(WRITE, 15, 4096);
const TREE_SEARCH: libc::Ioctl = request(READ | WRITE, 17, 4096);
const INO_LOOKUP: libc::Ioctl = request(READ | WRITE, 18, 4096);
const SNAP_CREATE: libc::Ioctl = request(WRITE, 23, 4096);
const FS_INFO: libc::Ioctl = request(READ, 31, 1024);
const QUOTA_CTL: libc::Ioctl = request(READ | WRITE, 40, 16);
const QGROUP_CREATE: libc::Ioctl = request(WRITE, 42, 16);
const QGROUP_LIMIT: libc::Ioctl = request(READ, 43, 48);

const WRITE: u32 = 1;
const READ: u32 = 2;
const FIRST_OBJECT: u64 = 256;
const NAME_AT: usize = 8;
const LIMIT_REFERENCED: u64 = 1;
const ENABLE_FULL: u64 = 1;
const ENABLE_SIMPLE: u64 = 4;

const fn request(direction: u32, number: u8, size: u32) -> libc::Ioctl {
    ((direction << 30) | (size << 16) | ((MAGIC as u32) << 8) | number as u32) as libc::Ioctl
}

/// How the kernel counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaKind {
    /// Each extent belongs to who wrote it first (Linux 6.7 and later): next to free.
    Simple,
    /// Back references are walked: slower, on older kernels.
    Full,
}

/// Turns quotas on; does nothing if they are.
pub fn enable_quotas(filesystem: impl AsFd) -> io::Result<QuotaKind> {
    match quota_control(filesystem.as_fd(), ENABLE_SIMPLE) {
        Ok(()) => Ok(QuotaKind::Simple),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            quota_control(filesystem.as_fd(), ENABLE_FULL).map(|()| QuotaKind::Full)
        }
        Err(error) => Err(error),
    }
}

/// Makes an empty subvolume `name` in the open directory `parent`.
pub fn create_subvolume(parent: impl AsFd, name: &OsStr) -> io::Result<()> {
    let mut arguments = named(name)?;
    control(parent.as_fd(), SUBVOL_CREATE, &mut arguments)
}

/// Makes the subvolume `name` in the open directory `parent`, holding what the subvolume `source` holds now. Constant time, whatever that is:
/// both share every block until one of them writes it anew. What was written to `source` before is in it, on disk.
pub fn snapshot_subvolume(source: impl AsFd, parent: impl AsFd, name: &OsStr, read_only: bool) -> io::Result<()> {
    const READ_ONLY: u64 = 2;
    const FLAGS_AT: usize = 16;
    const NAME_AT: usize = 56;
    let name = checked(name)?;
    let mut arguments = [0u8; 4096];
    arguments[..8].copy_from_slice(&i64::from(source.as_fd().as_raw_fd()).to_ne_bytes());
    arguments[FLAGS_AT..FLAGS_AT + 8].copy_from_slice(&(if read_only { READ_ONLY } else { 0 }).to_ne_bytes());
    arguments[NAME_AT..NAME_AT + name.as_bytes().len()].copy_from_slice(name.as_bytes());
    control(parent.as_fd(), SNAP_CREATE, &mut arguments)
}

/// Drops the subvolume `name` with all it holds. Its space comes back in the background.
pub fn delete_subvolume(parent: impl AsFd, name: &OsStr) -> io::Result<()> {
    let mut arguments = named(name)?;
    control(parent.as_fd(), SNAP_DESTROY, &mut arguments)
}

/// The number of the subvolume that this open directory is in.
pub fn subvolume_id(directory: impl AsFd) -> io::Result<u64> {
    let mut arguments = [0u64; 512];
    arguments[1] = FIRST_OBJECT;
    control(directory.as_fd(), INO_LOOKUP, &mut arguments)?;
    Ok(arguments[0])
}

/// Whether a subvolume of this number still exists, as of the last [`sync`]; one that is being taken apart does not.
pub fn subvolume_exists(filesystem: impl AsFd, id: u64) -> io::Result<bool> {
    Ok(references(filesystem.as_fd(), id)?.is_some_and(|count| count > 0))
}

/// Whether a dropped subvolume of this number is still being taken apart, as of the last [`sync`].
pub fn subvolume_is_going(filesystem: impl AsFd, id: u64) -> io::Result<bool> {
    Ok(references(filesystem.as_fd(), id)?.is_some())
}

/// How many names a subvolume has; `None` if nothing is left of it.
fn references(filesystem: BorrowedFd<'_>, id: u64) -> io::Result<Option<u64>> {
    const ROOT_TREE: u64 = 1;
    const ROOT_ITEM: u64 = 132;
    const FOUND_AT: usize = 8;
    /// The count of references in the `btrfs_root_item` that follows the search key and one item header.
    const REFERENCES_AT: usize = 44;
    let mut arguments = [0u64; 512];
    arguments[..9].copy_from_slice(&[ROOT_TREE, id, id, 0, u64::MAX, 0, u64::MAX, ROOT_ITEM | (ROOT_ITEM << 32), 1]);
    control(filesystem, TREE_SEARCH, &mut arguments)?;
    let low_half = |word: u64| word & u64::from(u32::MAX);
    Ok((low_half(arguments[FOUND_AT]) > 0).then(|| low_half(arguments[REFERENCES_AT])))
}

/// Bounds what the subvolume `id` may hold, in bytes.
pub fn limit_subvolume(filesystem: impl AsFd, id: u64, bytes: u64) -> io::Result<()> {
    let mut arguments = [id, LIMIT_REFERENCED, bytes, 0, 0, 0];
    control(filesystem.as_fd(), QGROUP_LIMIT, &mut arguments)
}

/// Removes the quota record of a dropped subvolume. `false` while the kernel still works on the drop.
pub fn remove_quota_record(filesystem: impl AsFd, id: u64) -> io::Result<bool> {
    let mut arguments = [0, id];
    match control(filesystem.as_fd(), QGROUP_CREATE, &mut arguments) {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes everything out and sets the kernel on taking dropped subvolumes apart, which a plain `syncfs` does not.
pub fn sync(filesystem: impl AsFd) -> io::Result<()> {
    control(filesystem.as_fd(), SYNC, &mut [0u8; 0])
}

/// The filesystem's own id as text, under which `/sys/fs/btrfs` shows it.
pub fn filesystem_id(filesystem: impl AsFd) -> io::Result<String> {
    const ID_AT: usize = 16;
    let mut answer = [0u8; 1024];
    control(filesystem.as_fd(), FS_INFO, &mut answer)?;
    let hex: String = answer[ID_AT..ID_AT + 16].iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
}

/// Bytes that the subvolume `id` holds now.
pub fn subvolume_usage(filesystem_id: &str, id: u64) -> io::Result<u64> {
    let text = std::fs::read_to_string(format!("/sys/fs/btrfs/{filesystem_id}/qgroups/0_{id}/referenced"))?;
    text.trim().parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not a number of bytes"))
}

/// The numbers of all subvolumes that have a quota record, dropped ones included.
pub fn quota_records(filesystem_id: &str) -> io::Result<Vec<u64>> {
    let mut ids = Vec::new();
    for entry in std::fs::read_dir(format!("/sys/fs/btrfs/{filesystem_id}/qgroups"))? {
        if let Some(id) = entry?.file_name().to_str().and_then(|name| name.strip_prefix("0_")?.parse().ok()) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// Opens a directory for the requests above.
pub fn open_directory(path: &std::path::Path) -> io::Result<std::os::fd::OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

fn quota_control(filesystem: BorrowedFd<'_>, command: u64) -> io::Result<()> {
    control(filesystem, QUOTA_CTL, &mut [command, 0])
}

/// `struct btrfs_ioctl_vol_args`: a number that is not used here, then the name.
fn named(name: &OsStr) -> io::Result<[u8; 4096]> {
    let text = checked(name)?;
    let mut arguments = [0u8; 4096];
    arguments[NAME_AT..NAME_AT + text.as_bytes().len()].copy_from_slice(text.as_bytes());
    Ok(arguments)
}

fn checked(name: &OsStr) -> io::Result<CString> {
    const LONGEST: usize = 254;
    let text = CString::new(name.as_bytes())?;
    if text.as_bytes().len() > LONGEST || name.is_empty() {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    Ok(text)
}

fn control<T: Copy, const N: usize>(target: BorrowedFd<'_>, request: libc::Ioctl, arguments: &mut [T; N]) -> io::Result<()> {
    const SIZE_SHIFT: u32 = 16;
    const SIZE_MASK: libc::Ioctl = 0x3fff;
    let expected = usize::try_from((request >> SIZE_SHIFT) & SIZE_MASK).map_err(io::Error::other)?;
    if size_of::<[T; N]>() != expected {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: the descriptor is open for the length of the call; the kernel reads and writes as many bytes as the request's size field
    // says, which was just compared with the size of the buffer; T is u8 or u64, for which every bit pattern is valid.
    let answer = unsafe { libc::ioctl(target.as_raw_fd(), request, arguments.as_mut_ptr()) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
