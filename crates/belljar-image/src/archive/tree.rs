//! A directory tree that is filled from outside and never left.
//!
//! Every name is resolved by the kernel beneath the tree's own descriptor, without following any link
//! (`RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS`), and the last part is acted on relative to its parent. Host paths are
//! never put together from an archive's names.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, XattrFlags, openat2};
use rustix::io::Errno;

/// The attribute by which overlayfs knows a directory that hides everything below.
pub(crate) const OPAQUE: &str = "trusted.overlay.opaque";

/// The attribute by which the store knows a directory that its archive only implied, and whose attributes are for lower layers to say.
pub(crate) const IMPLIED: &str = "trusted.belljar.implied";

/// How deep a tree may be that is walked whole, which takes stack for each level. No honest one is deeper.
pub(crate) const DEPTH_MAX: usize = 256;

/// How long a path in such a tree may be.
pub(crate) const PATH_MAX: usize = 4096;

/// A tree being filled.
pub(crate) struct Tree {
    root: OwnedFd,
    /// Whether directories that are made on the way are marked as implied.
    marks_implied: bool,
    /// Archives list a directory's files together: remembering the last one saves most of the look-ups.
    last_parent: Option<(Vec<u8>, OwnedFd)>,
}

/// What is at a place in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    Directory,
    File,
    Whiteout,
    Else,
}

/// Why a directory could not be entered.
#[derive(Debug)]
pub(crate) enum ParentError {
    /// Something on the way is not a directory.
    NotADirectory,
    /// The kernel failed.
    Io(io::Error),
}

impl Tree {
    /// The tree in the directory `path`.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { root: rustix::fs::openat(CWD, path, directory_flags(), Mode::empty())?, marks_implied: false, last_parent: None })
    }

    /// The tree whose root is already open.
    pub(crate) fn from_root(root: OwnedFd) -> Self {
        Self { root, marks_implied: false, last_parent: None }
    }

    /// From now on marks the directories that are made on the way to others.
    pub(crate) fn marking_implied(self) -> Self {
        Self { marks_implied: true, ..self }
    }

    /// Gives the root away.
    pub(crate) fn into_root(self) -> OwnedFd {
        self.root
    }

    /// The root itself.
    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// The directory `path`, made with plain attributes where parts of it are missing.
    pub(crate) fn parent(&mut self, path: &[u8]) -> Result<BorrowedFd<'_>, ParentError> {
        if path.is_empty() {
            return Ok(self.root.as_fd());
        }
        if self.last_parent.as_ref().is_none_or(|(known, _)| known != path) {
            let fd = match self.enter(path) {
                Ok(fd) => fd,
                // A whiteout of the same layer gives way to what is put in its place.
                Err(Errno::NOENT | Errno::NOTDIR) => self.make_parents(path)?,
                Err(Errno::LOOP) => return Err(ParentError::NotADirectory),
                Err(error) => return Err(ParentError::Io(error.into())),
            };
            self.last_parent = Some((path.to_vec(), fd));
        }
        match &self.last_parent {
            Some((_, fd)) => Ok(fd.as_fd()),
            None => Ok(self.root.as_fd()),
        }
    }

    /// Must be called before a directory is removed: its descriptor would outlive it.
    pub(crate) fn forget_parent(&mut self) {
        self.last_parent = None;
    }

    /// Opens the existing directory `path`.
    pub(crate) fn enter(&self, path: &[u8]) -> rustix::io::Result<OwnedFd> {
        openat2(&self.root, path, directory_flags(), Mode::empty(), beneath())
    }

    fn make_parents(&self, path: &[u8]) -> Result<OwnedFd, ParentError> {
        let mut current = rustix::io::fcntl_dupfd_cloexec(&self.root, 0).map_err(|e| ParentError::Io(e.into()))?;
        for part in path.split(|b| *b == b'/') {
            let found = look(current.as_fd(), part).map_err(ParentError::Io)?;
            match found {
                Found::Directory => {}
                Found::Nothing | Found::Whiteout => {
                    make_directory(current.as_fd(), part, found == Found::Whiteout).map_err(ParentError::Io)?;
                }
                Found::File | Found::Else => return Err(ParentError::NotADirectory),
            }
            let is_new = found == Found::Nothing;
            current = openat2(&current, part, directory_flags(), Mode::empty(), beneath()).map_err(|e| ParentError::Io(e.into()))?;
            if is_new && self.marks_implied {
                rustix::fs::fsetxattr(&current, IMPLIED, b"y", XattrFlags::empty()).map_err(|e| ParentError::Io(e.into()))?;
            }
        }
        Ok(current)
    }
}

/// Makes the directory `name`; where it replaces a whiteout it hides everything below, as the whiteout did.
pub(crate) fn make_directory(parent: BorrowedFd<'_>, name: &[u8], replaces_whiteout: bool) -> io::Result<()> {
    if replaces_whiteout {
        rustix::fs::unlinkat(parent, name, AtFlags::empty())?;
    }
    rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o755))?;
    // The process's umask must not decide what a layer looks like.
    let fd = open_directory(parent, name)?;
    rustix::fs::fchmod(&fd, Mode::from_raw_mode(0o755))?;
    if replaces_whiteout {
        set_opaque(fd.as_fd())?;
    }
    Ok(())
}

/// Marks a directory as hiding everything below.
pub(crate) fn set_opaque(directory: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::fs::fsetxattr(directory, OPAQUE, b"y", XattrFlags::empty())?)
}

/// The directory turns out to be in the archive itself.
pub(crate) fn clear_implied(directory: BorrowedFd<'_>) -> io::Result<()> {
    match rustix::fs::fremovexattr(directory, IMPLIED) {
        Ok(()) | Err(Errno::NODATA) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Opens the directory `name`, never through a link.
pub(crate) fn open_directory(parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<OwnedFd> {
    Ok(openat2(parent, name, directory_flags(), Mode::empty(), beneath())?)
}

/// What `name` is, itself and not what it points to.
pub(crate) fn look(parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<Found> {
    let stat = match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(Found::Nothing),
        Err(error) => return Err(error.into()),
    };
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Found::Directory,
        FileType::RegularFile => Found::File,
        FileType::CharacterDevice if stat.st_rdev == 0 => Found::Whiteout,
        _ => Found::Else,
    })
}

/// Removes `name` and everything in it, never through a link.
pub(crate) fn remove(parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR) => {}
        Err(error) => return Err(error.into()),
    }
    let directory = open_directory(parent, name)?;
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        let child = entry.file_name().to_bytes();
        if child != b"." && child != b".." {
            remove(directory.as_fd(), child)?;
        }
    }
    Ok(rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

fn directory_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// How every name in a tree is resolved.
pub(crate) fn beneath() -> ResolveFlags {
    ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS
}
