//! Files that Belljar itself puts into a layer: the agent, accounts, mount points, what a recipe lists.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{Gid, Mode, OFlags, Timespec, Timestamps, Uid};

use crate::archive::tree::{self, Found, ParentError, Tree};

/// Who may do what with a planted file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owned {
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Owned {
    pub(crate) fn root(mode: u32) -> Self {
        Self { mode, uid: 0, gid: 0 }
    }
}

/// Writes a file over whatever is there; missing directories are made.
pub(crate) fn file(tree: &mut Tree, path: &[u8], content: &mut dyn io::Read, owned: Owned) -> io::Result<()> {
    let (parent, name) = split(path);
    let parent = enter(tree, parent)?;
    tree::remove(parent, name)?;
    let create = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::openat(parent, name, create, Mode::from_raw_mode(0o600))?);
    io::copy(content, &mut file)?;
    file.flush()?;
    dress(file.as_fd(), owned)
}

/// Makes a directory, or changes the one that is there.
pub(crate) fn directory(tree: &mut Tree, path: &[u8], owned: Owned) -> io::Result<()> {
    let (parent, name) = split(path);
    let parent = enter(tree, parent)?;
    match tree::look(parent, name)? {
        Found::Directory => {}
        Found::Nothing => tree::make_directory(parent, name, false)?,
        Found::File | Found::Whiteout | Found::Else => return Err(io::ErrorKind::NotADirectory.into()),
    }
    dress(tree::open_directory(parent, name)?.as_fd(), owned)
}

/// Makes a symbolic link over whatever is there.
pub(crate) fn symlink(tree: &mut Tree, path: &[u8], target: &[u8]) -> io::Result<()> {
    let (parent, name) = split(path);
    let parent = enter(tree, parent)?;
    tree::remove(parent, name)?;
    rustix::fs::symlinkat(target, parent, name)?;
    Ok(rustix::fs::utimensat(parent, name, &epoch(), rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?)
}

fn enter<'t>(tree: &'t mut Tree, parent: &[u8]) -> io::Result<BorrowedFd<'t>> {
    tree.parent(parent).map_err(|error| match error {
        ParentError::NotADirectory => io::ErrorKind::NotADirectory.into(),
        ParentError::Io(error) => error,
    })
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|b| *b == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&[], path),
    }
}

fn dress(file: BorrowedFd<'_>, owned: Owned) -> io::Result<()> {
    rustix::fs::fchown(file, Some(Uid::from_raw(owned.uid)), Some(Gid::from_raw(owned.gid)))?;
    rustix::fs::fchmod(file, Mode::from_raw_mode(owned.mode))?;
    Ok(rustix::fs::futimens(file, &epoch())?)
}

fn epoch() -> Timestamps {
    let time = Timespec { tv_sec: 0, tv_nsec: 0 };
    Timestamps { last_access: time, last_modification: time }
}
