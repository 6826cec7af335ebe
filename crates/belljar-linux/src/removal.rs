//! Removing a tree that somebody hostile made, and may go on making.
//!
//! ```text
//!   a pass over the directory: each file ─▶ removed
//!                              each directory ─▶ its files removed, its directories moved up beside it ─▶ removed
//!   is it empty? ─ no, something was moved up ─▶ another pass
//!                ─ no, and nothing was        ─▶ somebody writes: another pass, but not often
//! ```
//! It may be deeper than any stack and any number of open files: so there is no recursion, and four descriptors are open at most. No link is
//! followed: what is removed is a name in an open directory, and a directory is opened beneath the one that it was found in.
//!
//! Whoever writes there faster than it is removed, or makes the tree deeper at its end, would keep this going for ever. What was there at first cannot
//! be told from what was not, so its caller says how long it may take. A removal that was given up can be asked for again, and goes on.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, RenameFlags};
use rustix::io::Errno;

use crate::resolve::open_directory_beneath;

/// How often the directory may be found to have something in it that was not moved there, before it is given up.
const TRIES: u32 = 100;

/// Removes what has this name in `parent`, if it is a directory with all in it. Fails with `ENOTEMPTY` if somebody keeps writing there, or if it is not
/// done after `patience`.
pub fn remove(parent: impl AsFd, name: &OsStr, patience: Duration) -> io::Result<()> {
    let parent = parent.as_fd();
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => {
            let top = open_directory_beneath(parent, Path::new(name))?;
            Removal { top, until: Instant::now().checked_add(patience), moved: 0 }.finish(parent, name)
        }
        done => Ok(done?),
    }
}

struct Removal {
    top: OwnedFd,
    until: Option<Instant>,
    /// How many directories were moved up.
    moved: u64,
}

impl Removal {
    fn finish(mut self, parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
        let mut tries = TRIES;
        loop {
            let moved_before = self.moved;
            self.pass()?;
            match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
                Err(Errno::NOTEMPTY | Errno::EXIST) if self.moved > moved_before => {}
                Err(Errno::NOTEMPTY | Errno::EXIST) if tries > 0 => tries -= 1,
                done => return Ok(done?),
            }
        }
    }

    /// Removes what is found, but for the directories that are moved up meanwhile.
    fn pass(&mut self) -> io::Result<()> {
        for entry in Dir::read_from(&self.top)? {
            let entry = entry?;
            if is_dot(entry.file_name().to_bytes()) {
                continue;
            }
            self.keep_patience()?;
            if !unlink(&self.top, entry.file_name().to_bytes())? {
                self.empty(entry.file_name().to_bytes())?;
                unlink(&self.top, entry.file_name().to_bytes())?;
            }
        }
        Ok(())
    }

    /// Removes what is in a directory, and moves the directories in it up that have something in them.
    fn empty(&mut self, name: &[u8]) -> io::Result<()> {
        let directory = match open_directory_beneath(&self.top, Path::new(OsStr::from_bytes(name))) {
            // Gone, or replaced by something else: the next pass sees.
            Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP)) => return Ok(()),
            other => other?,
        };
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            if is_dot(entry.file_name().to_bytes()) {
                continue;
            }
            self.keep_patience()?;
            if !unlink(&directory, entry.file_name().to_bytes())? {
                self.lift(&directory, entry.file_name().to_bytes())?;
            }
        }
        Ok(())
    }

    fn lift(&mut self, from: &OwnedFd, name: &[u8]) -> io::Result<()> {
        loop {
            self.keep_patience()?;
            self.moved += 1;
            let free = format!(".belljar-removed-{}", self.moved);
            match rustix::fs::renameat_with(from, OsStr::from_bytes(name), &self.top, free, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => {}
                Err(Errno::NOENT) => return Ok(()),
                done => return Ok(done?),
            }
        }
    }

    fn keep_patience(&self) -> io::Result<()> {
        if self.until.is_some_and(|until| Instant::now() >= until) { Err(Errno::NOTEMPTY.into()) } else { Ok(()) }
    }
}

/// Removes a file, or a directory with nothing in it. Says whether nothing is left of it; what is, is a directory.
fn unlink(directory: &OwnedFd, name: &[u8]) -> io::Result<bool> {
    let name = OsStr::from_bytes(name);
    match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(true),
        Err(Errno::ISDIR) => {}
        Err(errno) => return Err(errno.into()),
    }
    match rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR) {
        // By now it may be something else: that is for the next pass.
        Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => Ok(true),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

fn is_dot(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fs::{Mode, OFlags};

    use super::*;

    /// Nobody writes: it has all the time it wants.
    const LONG: Duration = Duration::from_secs(3600);
    const SHORT: Duration = Duration::from_millis(300);

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
            remove(open(inside.path()), OsStr::new(name), LONG).unwrap();
        }
        assert_eq!(std::fs::read_dir(inside.path()).unwrap().count(), 0);
        assert_eq!(std::fs::read(outside.path().join("file")).unwrap(), b"x");
        let nothing = remove(open(inside.path()), OsStr::new("doomed"), LONG).unwrap_err();
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
        let removing = std::thread::Builder::new().stack_size(STACK).spawn(move || remove(top, OsStr::new("deep"), LONG)).unwrap();
        removing.join().unwrap().unwrap();
        assert_eq!(std::fs::read_dir(inside.path()).unwrap().count(), 0);
    }

    /// There is always something left to remove: the writers are many, and what is there at the beginning keeps the remover from overtaking them.
    #[test]
    fn those_who_write_without_an_end_do_not_keep_it_going() {
        const THERE: usize = 20_000;
        const WRITERS: usize = 4;
        let inside = tempfile::tempdir().unwrap();
        let doomed = inside.path().join("doomed");
        std::fs::create_dir(&doomed).unwrap();
        for number in 0..THERE {
            std::fs::write(doomed.join(format!("there-{number}")), b"").unwrap();
        }
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (stop, doomed) = (&stop, &doomed);
                scope.spawn(move || {
                    for number in 0u64.. {
                        if stop.load(Ordering::Relaxed) || std::fs::write(doomed.join(format!("{writer}-{number}")), b"").is_err() {
                            return;
                        }
                    }
                });
            }
            let given_up = remove(open(inside.path()), OsStr::new("doomed"), SHORT);
            stop.store(true, Ordering::Relaxed);
            assert_eq!(given_up.unwrap_err().raw_os_error(), Some(Errno::NOTEMPTY.raw_os_error()));
        });
        remove(open(inside.path()), OsStr::new("doomed"), LONG).unwrap();
        assert_eq!(std::fs::read_dir(inside.path()).unwrap().count(), 0);
    }

    /// A tree that grows at its end is never found with anything in it that was removed before.
    #[test]
    fn a_removal_ends_with_its_patience_wherever_it_is() {
        for (name, depth) in [("wide", 0), ("deep", 50)] {
            let inside = tempfile::tempdir().unwrap();
            let mut at = inside.path().join(name);
            for _ in 0..=depth {
                std::fs::create_dir(&at).unwrap();
                std::fs::write(at.join("file"), b"").unwrap();
                at = at.join("d");
            }
            let given_up = remove(open(inside.path()), OsStr::new(name), Duration::ZERO);
            assert_eq!(given_up.unwrap_err().raw_os_error(), Some(Errno::NOTEMPTY.raw_os_error()), "{name}");
            assert!(inside.path().join(name).join("file").exists(), "{name}");
            remove(open(inside.path()), OsStr::new(name), LONG).unwrap();
        }
    }
}
