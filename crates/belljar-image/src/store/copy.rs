//! Copies a tree in overlay form: whiteouts, opaque directories, hard links and holes included; other people's sockets left out.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid, XattrFlags};

use crate::archive::tree::{DEPTH_MAX, IMPLIED, PATH_MAX, open_directory, set_opaque};
use crate::canonical::{is_implied, is_opaque, meaningful_attributes};

/// Copies what is in `from` but the paths in `leave_out`, and its attributes, to the empty directory `to`.
pub(super) fn copy_tree(from: BorrowedFd<'_>, to: BorrowedFd<'_>, leave_out: &'static [&'static [u8]]) -> io::Result<()> {
    let root = rustix::io::fcntl_dupfd_cloexec(to, 0)?;
    let mut copier = Copier { root, linked: HashMap::new(), linked_bytes: 0, entries: 0, depth: 0, leave_out };
    copier.directory(from, to, &mut Vec::new())
}

struct Copier {
    root: OwnedFd,
    /// Files with several names: device and inode to the path of the first copy.
    linked: HashMap<(u64, u64), Vec<u8>>,
    linked_bytes: usize,
    entries: u64,
    depth: usize,
    leave_out: &'static [&'static [u8]],
}

/// A sandbox may have made the tree, to be a burden: what no honest one has is refused, as it is in archives.
const ENTRIES_MAX: u64 = 2_000_000;
const LINKED_BYTES_MAX: usize = 64 << 20;

fn too_much(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the tree is {what}"))
}

impl Copier {
    fn directory(&mut self, from: BorrowedFd<'_>, to: BorrowedFd<'_>, path: &mut Vec<u8>) -> io::Result<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(too_much("more than 256 directories deep"));
        }
        for entry in Dir::read_from(from)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let length = path.len();
            if length > 0 {
                path.push(b'/');
            }
            path.extend_from_slice(name);
            self.entries += 1;
            if self.entries > ENTRIES_MAX || path.len() >= PATH_MAX {
                return Err(too_much("of more than 2 million entries, or has a path of more than 4 KiB"));
            }
            if !self.leave_out.contains(&path.as_slice()) {
                self.entry(from, to, name, path)?;
            }
            path.truncate(length);
        }
        if is_opaque(from)? {
            set_opaque(to)?;
        }
        if is_implied(from)? {
            rustix::fs::fsetxattr(to, IMPLIED, b"y", XattrFlags::empty())?;
        }
        self.depth -= 1;
        dress(from, to, &rustix::fs::fstat(from)?)
    }

    fn entry(&mut self, from: BorrowedFd<'_>, to: BorrowedFd<'_>, name: &[u8], path: &mut Vec<u8>) -> io::Result<()> {
        let stat = rustix::fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let private = Mode::from_raw_mode(0o600);
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                rustix::fs::mkdirat(to, name, Mode::from_raw_mode(0o700))?;
                self.directory(open_directory(from, name)?.as_fd(), open_directory(to, name)?.as_fd(), path)
            }
            FileType::RegularFile => self.file(from, to, name, &stat, path),
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(from, name, Vec::new())?;
                rustix::fs::symlinkat(target, to, name)?;
                let (uid, gid) = owner(&stat);
                rustix::fs::chownat(to, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
                Ok(rustix::fs::utimensat(to, name, &times(&stat), AtFlags::SYMLINK_NOFOLLOW)?)
            }
            FileType::Fifo => {
                rustix::fs::mknodat(to, name, FileType::Fifo, private, 0)?;
                let (uid, gid) = owner(&stat);
                rustix::fs::chownat(to, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
                Ok(rustix::fs::chmodat(to, name, Mode::from_raw_mode(stat.st_mode & 0o7777), AtFlags::empty())?)
            }
            FileType::CharacterDevice if stat.st_rdev == 0 => {
                Ok(rustix::fs::mknodat(to, name, FileType::CharacterDevice, Mode::empty(), 0)?)
            }
            // A socket outlives its server only as a name; nobody can connect to it in a copy.
            FileType::Socket => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the tree holds a device node")),
        }
    }

    fn file(&mut self, from: BorrowedFd<'_>, to: BorrowedFd<'_>, name: &[u8], stat: &Stat, path: &[u8]) -> io::Result<()> {
        if stat.st_nlink > 1 {
            if let Some(first) = self.linked.get(&(stat.st_dev, stat.st_ino)) {
                return Ok(rustix::fs::linkat(&self.root, first.as_slice(), to, name, AtFlags::empty())?);
            }
            self.linked_bytes += path.len();
            if self.linked_bytes > LINKED_BYTES_MAX {
                return Err(too_much("too full of files with several names"));
            }
            self.linked.insert((stat.st_dev, stat.st_ino), path.to_vec());
        }
        let read = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let create = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut source = File::from(rustix::fs::openat(from, name, read, Mode::empty())?);
        let mut copy = File::from(rustix::fs::openat(to, name, create, Mode::from_raw_mode(0o600))?);
        io::copy(&mut source, &mut copy)?;
        dress(source.as_fd(), copy.as_fd(), stat)
    }
}

/// Owner, mode, attributes, times: in this order, because changing the owner clears bits of the mode.
fn dress(from: BorrowedFd<'_>, to: BorrowedFd<'_>, stat: &Stat) -> io::Result<()> {
    let (uid, gid) = owner(stat);
    rustix::fs::fchown(to, uid, gid)?;
    rustix::fs::fchmod(to, Mode::from_raw_mode(stat.st_mode & 0o7777))?;
    for (name, value) in meaningful_attributes(from)? {
        rustix::fs::fsetxattr(to, name.as_slice(), &value, XattrFlags::empty())?;
    }
    Ok(rustix::fs::futimens(to, &times(stat))?)
}

fn owner(stat: &Stat) -> (Option<Uid>, Option<Gid>) {
    (Some(Uid::from_raw(stat.st_uid)), Some(Gid::from_raw(stat.st_gid)))
}

fn times(stat: &Stat) -> Timestamps {
    let time = Timespec { tv_sec: stat.st_mtime, tv_nsec: stat.st_mtime_nsec as _ };
    Timestamps { last_access: time, last_modification: time }
}
