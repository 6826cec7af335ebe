//! The tree in a volume, walked without being led out of it.
//!
//! A directory is opened by one `openat2` that takes no link; what is done then is done to a name in that open directory, and never follows.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use belljar_linux::resolve::{open_beneath, open_directory_beneath};
use belljar_types::{EntryChange, FileKind, VolumeEntry, VolumePath};
use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;

use crate::pool::OWNER;

const DIRECTORY_MODE: u32 = 0o755;
const NANOS: i64 = 1_000_000_000;
/// The longest link that Linux makes.
const LINK_MAX: usize = 4096;

/// What is at a path.
pub(super) fn stat(root: &OwnedFd, path: &VolumePath) -> io::Result<VolumeEntry> {
    if path.is_root() {
        return Ok(entry(&rustix::fs::fstat(root)?, path.as_path(), None));
    }
    let (parent, name) = parent_of(root, path)?;
    entry_in(&parent, name, path.as_path())
}

/// What the name in an open directory stands for; `path` is what it is called in the answer.
pub(super) fn entry_in(parent: &OwnedFd, name: &OsStr, path: &Path) -> io::Result<VolumeEntry> {
    let found = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let target = if kind(&found) == FileKind::Symlink {
        let mut target = rustix::fs::readlinkat(parent, name, Vec::new())?.into_bytes();
        target.truncate(LINK_MAX);
        Some(target)
    } else {
        None
    };
    Ok(entry(&found, path, target))
}

/// Entries below a directory, by path.
pub(super) fn list(root: &OwnedFd, path: &VolumePath, depth: u32, limit: u32) -> io::Result<Vec<VolumeEntry>> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut found = Vec::new();
    let mut waiting = vec![(path.as_path().to_owned(), 1)];
    while let Some((directory, level)) = waiting.pop() {
        let opened = match open_directory(root, &directory) {
            // Somebody removed or replaced it meanwhile; only the one that was asked for has to be there.
            Err(_) if level > 1 => continue,
            opened => opened?,
        };
        for item in Dir::read_from(&opened)? {
            if found.len() >= limit {
                return Ok(sorted(found));
            }
            let item = item?;
            if is_dot(item.file_name()) {
                continue;
            }
            let name = OsStr::from_bytes(item.file_name().to_bytes());
            let Ok(entry) = entry_in(&opened, name, &directory.join(name)) else { continue };
            if entry.kind == FileKind::Directory && level < depth {
                waiting.push((directory.join(name), level + 1));
            }
            found.push(entry);
        }
    }
    Ok(sorted(found))
}

fn sorted(mut entries: Vec<VolumeEntry>) -> Vec<VolumeEntry> {
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    entries
}

pub(super) fn is_dot(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

/// Makes a directory; with `parents` those above it too, and one that is there is taken as it is.
pub(super) fn make_directory(root: &OwnedFd, path: &VolumePath, change: EntryChange, parents: bool) -> io::Result<VolumeEntry> {
    if path.is_root() {
        return if parents { stat(root, path) } else { Err(Errno::EXIST.into()) };
    }
    if parents {
        make_parents(root, path)?;
    }
    let (parent, name) = parent_of(root, path)?;
    match rustix::fs::mkdirat(&parent, name, Mode::RWXU) {
        Ok(()) => give(&open_directory(&parent, Path::new(name))?, change, DIRECTORY_MODE)?,
        // Taken if it is a directory; anything else is in the way.
        Err(Errno::EXIST) if parents => drop(open_directory(&parent, Path::new(name))?),
        Err(errno) => return Err(errno.into()),
    }
    stat(root, path)
}

/// Makes the directories above a path that are not there.
pub(super) fn make_parents(root: &OwnedFd, path: &VolumePath) -> io::Result<()> {
    let mut at = PathBuf::new();
    let mut directory = open_directory(root, &at)?;
    for part in path.as_path().parent().into_iter().flat_map(Path::iter) {
        at.push(part);
        let made = rustix::fs::mkdirat(&directory, part, Mode::RWXU);
        let next = match made {
            Ok(()) | Err(Errno::EXIST) => open_directory(&directory, Path::new(part))?,
            Err(errno) => return Err(errno.into()),
        };
        if made.is_ok() {
            give(&next, EntryChange::default(), DIRECTORY_MODE)?;
        }
        directory = next;
    }
    Ok(())
}

/// Gives something new its owner and permissions.
pub(super) fn give(made: &OwnedFd, change: EntryChange, mode: u32) -> io::Result<()> {
    let owner = |id: Option<u32>| id.unwrap_or(OWNER);
    rustix::fs::fchown(made, Some(Uid::from_raw(owner(change.uid))), Some(Gid::from_raw(owner(change.gid))))?;
    Ok(rustix::fs::fchmod(made, Mode::from_raw_mode(change.mode.unwrap_or(mode)))?)
}

/// Changes owner and permissions of a file or directory.
pub(super) fn change(root: &OwnedFd, path: &VolumePath, change: EntryChange) -> io::Result<VolumeEntry> {
    let opened = open_beneath(root, or_dot(path.as_path()), OFlags::PATH, Mode::empty())?;
    match kind(&rustix::fs::fstat(&opened)?) {
        FileKind::File | FileKind::Directory => {}
        FileKind::Symlink => return Err(Errno::LOOP.into()),
        FileKind::Other => return Err(Errno::NXIO.into()),
    }
    if change.uid.is_some() || change.gid.is_some() {
        rustix::fs::chownat(&opened, "", change.uid.map(Uid::from_raw), change.gid.map(Gid::from_raw), AtFlags::EMPTY_PATH)?;
    }
    if let Some(mode) = change.mode {
        // What was opened, and nothing that has its name since.
        rustix::fs::chmod(format!("/proc/self/fd/{}", opened.as_raw_fd()), Mode::from_raw_mode(mode))?;
    }
    Ok(entry(&rustix::fs::fstat(&opened)?, path.as_path(), None))
}

/// Moves something within the volume.
pub(super) fn rename(root: &OwnedFd, from: &VolumePath, to: &VolumePath) -> io::Result<VolumeEntry> {
    let ((from_parent, from_name), (to_parent, to_name)) = (parent_of(root, from)?, parent_of(root, to)?);
    rustix::fs::renameat(&from_parent, from_name, &to_parent, to_name)?;
    entry_in(&to_parent, to_name, to.as_path())
}

/// The open directory that a path's last part is in, and that part.
pub(super) fn parent_of<'a>(root: &OwnedFd, path: &'a VolumePath) -> io::Result<(OwnedFd, &'a OsStr)> {
    let name = path.as_path().file_name().ok_or(Errno::INVAL)?;
    Ok((open_directory(root, path.as_path().parent().unwrap_or(Path::new("")))?, name))
}

pub(super) fn open_directory(root: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    open_directory_beneath(root, or_dot(path))
}

fn or_dot(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

pub(super) fn kind(found: &Stat) -> FileKind {
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        _ => FileKind::Other,
    }
}

pub(super) fn entry(found: &Stat, path: &Path, symlink_target: Option<Vec<u8>>) -> VolumeEntry {
    let moment = |seconds: i64, nanos: u64| seconds.saturating_mul(NANOS).saturating_add(i64::try_from(nanos).unwrap_or(0));
    VolumeEntry {
        path: path.as_os_str().as_bytes().to_vec(),
        kind: kind(found),
        size: u64::try_from(found.st_size).unwrap_or(0),
        mode: found.st_mode & 0o7777,
        uid: found.st_uid,
        gid: found.st_gid,
        accessed_nanos: moment(found.st_atime, found.st_atime_nsec),
        modified_nanos: moment(found.st_mtime, found.st_mtime_nsec),
        changed_nanos: moment(found.st_ctime, found.st_ctime_nsec),
        symlink_target,
    }
}
