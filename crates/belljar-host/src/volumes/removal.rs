//! Removing a tree that somebody hostile made, and may go on making.
//!
//! It may be deeper than any stack and any number of open files: so there is no recursion. Directories that are found inside one are moved up
//! beside it, where they wait for their turn; each is emptied and removed with three descriptors open.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use belljar_types::VolumePath;
use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::Errno;

use super::tree::{is_dot, open_directory, parent_of};

/// How often a directory may be found to have something in it again, because somebody keeps writing, before it is given up.
const TRIES: u32 = 100;

/// Removes a file, or a directory with all in it.
pub(super) fn remove(root: &OwnedFd, path: &VolumePath) -> io::Result<()> {
    let (parent, name) = parent_of(root, path)?;
    match rustix::fs::unlinkat(&parent, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => remove_directory(&parent, name),
        done => Ok(done?),
    }
}

fn remove_directory(parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
    let top = open_directory(parent, Path::new(name))?;
    let mut moved = 0u64;
    for _ in 0..TRIES {
        while let Some((entry, is_directory)) = first(&top)? {
            match rustix::fs::unlinkat(&top, entry.as_os_str(), if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() }) {
                Err(Errno::NOTEMPTY | Errno::EXIST) => empty(&top, &entry, &mut moved)?,
                Ok(()) | Err(Errno::NOENT | Errno::ISDIR | Errno::NOTDIR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            done => return Ok(done?),
        }
    }
    Err(Errno::NOTEMPTY.into())
}

/// Removes what is in a directory of `top`, and moves the directories in it up to `top`.
fn empty(top: &OwnedFd, name: &OsStr, moved: &mut u64) -> io::Result<()> {
    let directory = match open_directory(top, Path::new(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        if is_dot(entry.file_name()) {
            continue;
        }
        match rustix::fs::unlinkat(&directory, entry.file_name(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::ISDIR) => lift(&directory, entry.file_name().to_bytes(), top, moved)?,
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

fn lift(from: &OwnedFd, name: &[u8], top: &OwnedFd, moved: &mut u64) -> io::Result<()> {
    loop {
        *moved += 1;
        let free = format!(".belljar-removed-{moved}");
        match rustix::fs::renameat_with(from, OsStr::from_bytes(name), top, free, rustix::fs::RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            Err(Errno::NOENT) => return Ok(()),
            done => return Ok(done?),
        }
    }
}

fn first(directory: &OwnedFd) -> io::Result<Option<(OsString, bool)>> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        if !is_dot(entry.file_name()) {
            let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
            return Ok(Some((name, entry.file_type() == FileType::Directory)));
        }
    }
    Ok(None)
}
