//! Opening files below a directory that a hostile sandbox may have filled, without ever being led out of it.
//!
//! Each open is one `openat2` that refuses magic links and anything above the directory, and symbolic links unless they are asked for, so there is no
//! moment between a check and its use.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

/// How often a way is tried again that crossed a change. Whoever renames without an end in a sandbox must not keep the host here.
const TRIES: u32 = 1000;

fn confined() -> ResolveFlags {
    ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS
}

/// One open that stays below `directory`. The kernel gives up a way with `..` in it whenever anything on the whole machine is renamed or mounted
/// meanwhile, since it cannot tell any more whether that led out: such a way is walked anew.
fn open_confined(directory: impl AsFd, path: &Path, flags: OFlags, mode: Mode, resolve: ResolveFlags) -> io::Result<OwnedFd> {
    let mut tries = TRIES;
    loop {
        match openat2(&directory, path, flags | OFlags::CLOEXEC, mode, resolve) {
            Err(Errno::AGAIN) if tries > 0 => tries -= 1,
            other => return Ok(other?),
        }
    }
}

/// Opens `path` below `directory`.
pub fn open_beneath(directory: impl AsFd, path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
    open_confined(directory, path, flags | OFlags::NOFOLLOW, mode, confined())
}

/// Opens what `path` leads to for somebody whose root is `directory`: links are followed, and end there at the latest.
pub fn open_within(directory: impl AsFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    open_confined(directory, path, flags, Mode::empty(), ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS)
}

/// Opens the directory `path` below `directory`.
pub fn open_directory_beneath(directory: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    open_beneath(directory, path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
}

/// Makes the directory `name` in `directory`, or takes the one that is there, and opens it.
pub fn make_directory_beneath(directory: impl AsFd, name: &Path, mode: Mode) -> io::Result<OwnedFd> {
    let directory = directory.as_fd();
    let (parent, last) = split(directory, name)?;
    let parent = parent.as_ref().map_or(directory, AsFd::as_fd);
    match rustix::fs::mkdirat(parent, last, mode) {
        Ok(()) | Err(Errno::EXIST) => open_directory_beneath(parent, last),
        Err(errno) => Err(errno.into()),
    }
}

/// Makes the directory `path` below `directory`, and those above it that are missing, with exactly this mode; those that are there stay as they
/// are. Opens it.
pub fn make_directories_beneath(directory: impl AsFd, path: &Path, mode: Mode) -> io::Result<OwnedFd> {
    let mut at = open_directory_beneath(directory, Path::new("."))?;
    for part in path {
        let made = match rustix::fs::mkdirat(&at, part, mode) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(errno.into()),
        };
        at = open_directory_beneath(&at, Path::new(part))?;
        if made {
            // Whatever the umask of this process took away.
            rustix::fs::fchmod(&at, mode)?;
        }
    }
    Ok(at)
}

/// Writes a new file `path` below `directory`; refuses if there is anything of that name.
pub fn write_new_beneath(directory: impl AsFd, path: &Path, mode: Mode, content: &[u8]) -> io::Result<()> {
    let file = open_beneath(directory, path, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, mode)?;
    File::from(file).write_all(content)
}

fn split(directory: impl AsFd, path: &Path) -> io::Result<(Option<OwnedFd>, &Path)> {
    let last = path.file_name().map(Path::new).ok_or(io::ErrorKind::InvalidInput)?;
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => Ok((Some(open_directory_beneath(directory, parent)?), last)),
        None => Ok((None, last)),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn root() -> (tempfile::TempDir, OwnedFd) {
        let directory = tempfile::tempdir().unwrap();
        let open = rustix::fs::open(directory.path(), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        (directory, open)
    }

    #[test]
    fn nothing_leads_out() {
        let (directory, open) = root();
        std::os::unix::fs::symlink("/etc", directory.path().join("absolute")).unwrap();
        std::os::unix::fs::symlink("../..", directory.path().join("upwards")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", directory.path().join("file")).unwrap();
        for path in ["absolute/passwd", "upwards/etc/passwd", "../x", "/etc/passwd", "file", "absolute"] {
            assert!(open_beneath(&open, Path::new(path), OFlags::RDONLY, Mode::empty()).is_err(), "{path}");
            assert!(write_new_beneath(&open, Path::new(path), Mode::RUSR, b"x").is_err(), "{path}");
        }
        assert!(make_directory_beneath(&open, Path::new("absolute/belljar"), Mode::RWXU).is_err());
        assert!(make_directories_beneath(&open, Path::new("absolute/belljar/x"), Mode::RWXU).is_err());
        assert!(make_directories_beneath(&open, Path::new("new/../../belljar"), Mode::RWXU).is_err());
        assert!(!Path::new("/etc/belljar").exists());
    }

    #[test]
    fn a_way_up_and_down_is_found_while_others_rename() {
        let (directory, open) = root();
        std::fs::create_dir(directory.path().join("below")).unwrap();
        std::fs::write(directory.path().join("file"), b"x").unwrap();
        let path = PathBuf::from("below/..".to_owned() + &"/below/..".repeat(50) + "/file");
        let stop = AtomicBool::new(false);
        let elsewhere = tempfile::tempdir().unwrap();
        let (one, other) = (elsewhere.path().join("one"), elsewhere.path().join("other"));
        std::fs::write(&one, b"").unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::fs::rename(&one, &other).and_then(|()| std::fs::rename(&other, &one)).unwrap();
                }
            });
            let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
            let crossed = || matches!(openat2(&open, &path, OFlags::PATH, Mode::empty(), resolve), Err(Errno::AGAIN));
            let given_up = (0..10_000_000).any(|_| crossed());
            let found = (0..1000).try_for_each(|_| open_within(&open, &path, OFlags::PATH).map(drop));
            stop.store(true, Ordering::Relaxed);
            assert!(given_up, "the control: one try is enough here");
            found.unwrap();
        });
    }

    #[test]
    fn ordinary_files_are_written_once() {
        let (directory, open) = root();
        make_directory_beneath(&open, Path::new("a"), Mode::RWXU).unwrap();
        make_directory_beneath(&open, Path::new("a/b"), Mode::RWXU).unwrap();
        make_directories_beneath(&open, Path::new("a/b/c/d"), Mode::from_raw_mode(0o755)).unwrap();
        write_new_beneath(&open, Path::new("a/b/f"), Mode::RUSR | Mode::WUSR, b"hello").unwrap();
        assert_eq!(std::fs::read(directory.path().join("a/b/f")).unwrap(), b"hello");
        assert!(write_new_beneath(&open, Path::new("a/b/f"), Mode::RUSR, b"again").is_err());
    }
}
