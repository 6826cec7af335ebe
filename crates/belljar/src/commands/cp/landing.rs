//! Where a download lands. Nothing is written outside it, whatever the sandbox says its files are called and wherever its links point.
//!
//! Every step goes from an open directory to one plain name in it, and no step follows a symbolic link: neither one that was just made on a
//! sandbox's word, nor one that was here before.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, mkdirat, open, openat, statat, symlinkat, unlinkat};
use rustix::io::Errno;

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A directory on this machine into which things are put.
#[derive(Debug)]
pub(super) struct Landing {
    directory: OwnedFd,
}

impl Landing {
    /// Takes a directory that its owner named; links in that name are the owner's own.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Ok(Self { directory: open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())? })
    }

    /// The directory of that name in this one, made if it is not there.
    pub(super) fn directory(&self, name: &OsStr, mode: u32) -> io::Result<Self> {
        // Its owner must be able to fill it and to remove it again.
        match mkdirat(&self.directory, name, Mode::from_raw_mode(mode & 0o777 | 0o700)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Self { directory: openat(&self.directory, name, DIRECTORY, Mode::empty())? })
    }

    /// The directory below this one that these names lead to; it must be there.
    pub(super) fn below(&self, names: &[OsString]) -> io::Result<Self> {
        let mut at = Self { directory: self.directory.try_clone()? };
        for name in names {
            at = Self { directory: openat(&at.directory, name, DIRECTORY, Mode::empty())? };
        }
        Ok(at)
    }

    /// A file of that name in this directory, empty. An old one is overwritten; anything else in its place is an error.
    pub(super) fn file(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        // Not waiting: a named pipe of that name would keep us here for ever.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd = openat(&self.directory, name, flags, Mode::from_raw_mode(mode & 0o777 | 0o200)).map_err(|error| match error {
            Errno::LOOP => io::Error::other("a symbolic link is in its place, and links are not followed"),
            other => other.into(),
        })?;
        if FileType::from_raw_mode(fstat(&fd)?.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("something that is no file is in its place"));
        }
        let file = File::from(fd);
        file.set_len(0)?;
        Ok(file)
    }

    /// A symbolic link of that name in this directory. An old link is replaced.
    pub(super) fn link(&self, name: &OsStr, target: &[u8]) -> io::Result<()> {
        let target = OsStr::from_bytes(target);
        match symlinkat(target, &self.directory, name) {
            Err(Errno::EXIST) if self.is_link(name) => {
                unlinkat(&self.directory, name, AtFlags::empty())?;
                Ok(symlinkat(target, &self.directory, name)?)
            }
            other => Ok(other?),
        }
    }

    fn is_link(&self, name: &OsStr) -> bool {
        statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
    }
}

/// Whether a link at this depth below the landing leads to something at or below it. Absolute targets do not, and `..` may only come first: behind a
/// name, which may be a link itself, it could lead anywhere.
pub(super) fn stays_inside(depth: usize, target: &[u8]) -> bool {
    if target.is_empty() || target.starts_with(b"/") || target.contains(&0) {
        return false;
    }
    let mut parts = target.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b".")).peekable();
    let mut ups = 0;
    while parts.next_if_eq(&&b".."[..]).is_some() {
        ups += 1;
    }
    ups <= depth && parts.all(|part| part != b"..")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn name(text: &str) -> &OsStr {
        OsStr::new(text)
    }

    #[test]
    fn links_are_never_followed() {
        let outside = tempfile::tempdir().unwrap();
        let inside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("file"), "precious").unwrap();
        symlink(outside.path(), inside.path().join("directory")).unwrap();
        symlink(outside.path().join("file"), inside.path().join("file")).unwrap();
        symlink(outside.path().join("new"), inside.path().join("dangling")).unwrap();
        let landing = Landing::open(inside.path()).unwrap();
        assert!(landing.directory(name("directory"), 0o755).is_err());
        assert!(landing.below(&["directory".into()]).is_err());
        assert!(landing.file(name("file"), 0o644).is_err());
        assert!(landing.file(name("dangling"), 0o644).is_err());
        assert_eq!(std::fs::read_to_string(outside.path().join("file")).unwrap(), "precious");
        assert!(!outside.path().join("new").exists());
        // The same steps without links go through: it is the links that stop them.
        landing.directory(name("real"), 0o755).unwrap().file(name("file"), 0o644).unwrap();
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_refused() {
        let inside = tempfile::tempdir().unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, inside.path().join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert!(Landing::open(inside.path()).unwrap().file(name("pipe"), 0o644).is_err());
    }

    #[test]
    fn an_old_link_is_replaced_and_an_old_file_is_not() {
        let inside = tempfile::tempdir().unwrap();
        let landing = Landing::open(inside.path()).unwrap();
        landing.link(name("link"), b"one").unwrap();
        landing.link(name("link"), b"two").unwrap();
        assert_eq!(std::fs::read_link(inside.path().join("link")).unwrap(), Path::new("two"));
        std::fs::write(inside.path().join("file"), "kept").unwrap();
        assert!(landing.link(name("file"), b"one").is_err());
        assert_eq!(std::fs::read_to_string(inside.path().join("file")).unwrap(), "kept");
    }

    #[test]
    fn a_link_out_of_the_tree_is_told_apart() {
        for (depth, target, inside) in [
            (0, "file", true),
            (0, "./a//b", true),
            (0, "a/../b", false),
            (0, "../file", false),
            (1, "../file", true),
            (1, "../../file", false),
            (1, "a/../../../x", false),
            (0, "/etc/passwd", false),
            (0, "", false),
        ] {
            assert_eq!(stays_inside(depth, target.as_bytes()), inside, "{depth} {target}");
        }
    }
}
