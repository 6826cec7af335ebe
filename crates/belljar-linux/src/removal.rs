//! Removing a tree that somebody hostile made, and may go on making.
//!
//! It may be deeper than any stack and any number of open files: so there is no recursion. Directories that are found inside one are moved up
//! beside it, where they wait for their turn; each is emptied and removed with three descriptors open. No link is followed: what is removed is
//! a name in an open directory, and a directory is opened beneath the one that it was found in.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, RenameFlags};
use rustix::io::Errno;

use crate::resolve::open_directory_beneath;

/// How often a directory may be found to have something in it again, because somebody keeps writing, before it is given up.
const TRIES: u32 = 100;

/// Removes what has this name in `parent`, if it is a directory with all in it.
pub fn remove(parent: impl AsFd, name: &OsStr) -> io::Result<()> {
    let parent = parent.as_fd();
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => remove_directory(parent, name),
        done => Ok(done?),
    }
}

fn remove_directory(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    let top = open_directory_beneath(parent, Path::new(name))?;
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
    let directory = match open_directory_beneath(top, Path::new(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
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
        match rustix::fs::renameat_with(from, OsStr::from_bytes(name), top, free, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            Err(Errno::NOENT) => return Ok(()),
            done => return Ok(done?),
        }
    }
}

fn first(directory: &OwnedFd) -> io::Result<Option<(OsString, bool)>> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
            return Ok(Some((name, entry.file_type() == FileType::Directory)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{Mode, OFlags};

    use super::*;

    fn open(path: &Path) -> OwnedFd {
        rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap()
    }

    #[test]
    fn links_are_removed_and_not_followed() {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let directory = inside.path().join("doomed/below");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(outside.path().join("file"), b"x").unwrap();
        for name in ["doomed/link", "doomed/below/link", "link"] {
            std::os::unix::fs::symlink(outside.path(), inside.path().join(name)).unwrap();
        }
        for name in ["doomed", "link"] {
            remove(open(inside.path()), OsStr::new(name)).unwrap();
        }
        assert_eq!(std::fs::read_dir(inside.path()).unwrap().count(), 0);
        assert_eq!(std::fs::read(outside.path().join("file")).unwrap(), b"x");
        let nothing = remove(open(inside.path()), OsStr::new("doomed")).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn what_is_deeper_than_the_stack_is_removed() {
        const STACK: usize = 64 << 10;
        let inside = tempfile::tempdir().unwrap();
        let top = open(inside.path());
        rustix::fs::mkdirat(&top, "deep", Mode::RWXU).unwrap();
        let mut at = open_directory_beneath(&top, Path::new("deep")).unwrap();
        for _ in 0..20_000 {
            rustix::fs::mkdirat(&at, "d", Mode::RWXU).unwrap();
            at = open_directory_beneath(&at, Path::new("d")).unwrap();
        }
        let removing = std::thread::Builder::new().stack_size(STACK).spawn(move || remove(top, OsStr::new("deep"))).unwrap();
        removing.join().unwrap().unwrap();
        assert_eq!(std::fs::read_dir(inside.path()).unwrap().count(), 0);
    }
}
