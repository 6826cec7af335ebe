//! The root that the command sees, and the way into it.
//!
//! The root itself is a small filesystem in memory, read-only when it is done. One larger one holds all that is the command's own to write:
//! `/tmp`, `/run`, `/var/tmp`, `/dev/shm` and its home; pieces of it are mounted where they belong. The host's root stays attached until the
//! very end, because the kernel gives a user namespace a new `/proc` only while it can see a whole one.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::Path;

use belljar_linux::guarded::{attach, copy_whole_tree, restrict_tree};
use belljar_linux::mount::{Restrictions, memory_filesystem, restrict};
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount};
use rustix::termios::isatty;

use super::sources::{self, Sources};
use super::{cover, etc};
use crate::line::{At, Failure, Step};
use crate::plan::{Identity, Plan};

const ROOT_BYTES: u64 = 16 << 20;
const ROOT_FILES: u64 = 4096;
const SCRATCH_FILES: u64 = 1 << 20;
/// Any directory of the host does, as long as it is not `/proc`: it is covered in this mount namespace only.
const STAGE: &str = "/dev";
const QUIET: Restrictions = Restrictions::NO_SETUID.and(Restrictions::NO_DEVICES);

/// Pieces of the writable filesystem: their names there, where they go, and their modes.
const PIECES: [(&str, &str, u32); 4] =
    [("tmp", "/tmp", 0o1777), ("run", "/run", 0o755), ("var-tmp", "/var/tmp", 0o1777), ("shm", "/dev/shm", 0o1777)];

/// Builds it and goes in.
pub(super) fn enter(plan: &Plan) -> Result<(), Failure> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).at(Step::MakeRoot, "/")?;
    let sources = sources::gather(plan)?;
    let etc = if plan.template_root.is_none() { Some(etc::gather(plan)?) } else { None };
    let root = match &plan.template_root {
        Some(root) => root.try_clone().at(Step::MakeRoot, "/")?,
        None => memory_filesystem(ROOT_BYTES, ROOT_FILES, 0o755, QUIET).at(Step::MakeRoot, "/")?,
    };
    go_into(&root)?;
    let scratch = lay_out(plan)?;
    devices(plan, &scratch, &sources)?;
    for (link, target) in &sources.links {
        symlink(target, link).at(Step::Write, link)?;
    }
    for (mount, at) in &sources.mounts {
        attach_directory(mount, at)?;
    }
    if let Some(etc) = etc {
        etc.put()?;
        // A template has its own home; here it begins empty.
        attach_directory(&piece(&scratch, "home", 0o700)?, &plan.home)?;
    }
    let quiet = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", quiet, None).at(Step::Processes, "")?;
    let covers = cover::Covers::make(&scratch)?;
    covers.mask_processes()?;
    for (mount, at, is_directory) in &sources.shown {
        if fs::symlink_metadata(at).is_ok_and(|found| found.is_symlink()) {
            // It lies in something that is shown, and leads there already.
        } else if *is_directory {
            attach_directory(mount, at)?;
        } else {
            attach_file(mount, at)?;
        }
    }
    unmount(".", UnmountFlags::DETACH).at(Step::ChangeRoot, "")?;
    rustix::process::chdir("/").at(Step::ChangeRoot, "/")?;
    covers.protect(&plan.cwd, &plan.protected.paths)?;
    if plan.template_root.is_none() {
        restrict(root.as_fd(), Restrictions::READ_ONLY).at(Step::MakeRoot, "/")?;
    }
    Ok(())
}

fn go_into(root: &OwnedFd) -> Result<(), Failure> {
    attach(root.as_fd(), None, Path::new(STAGE)).at(Step::ChangeRoot, STAGE)?;
    rustix::process::fchdir(root).at(Step::ChangeRoot, "")?;
    // The host's root ends up on top of ours, and is taken off from there.
    rustix::process::pivot_root(".", ".").at(Step::ChangeRoot, "")
}

/// Makes the mount points of the root and what is writable. Returns the latter's own root, which nothing inside can reach afterwards.
fn lay_out(plan: &Plan) -> Result<OwnedFd, Failure> {
    for path in ["/tmp", "/run", "/proc", "/dev", "/var/tmp"] {
        make_directory(Path::new(path))?;
    }
    let scratch = memory_filesystem(plan.scratch_bytes, SCRATCH_FILES, 0o755, QUIET).at(Step::MakeRoot, "/tmp")?;
    // A copy of a part can be taken only of what is attached; the last piece to be mounted covers it.
    attach(scratch.as_fd(), None, Path::new("/tmp")).at(Step::Attach, "/tmp")?;
    let parts: Vec<_> = PIECES.iter().map(|(name, at, mode)| Ok((piece(&scratch, name, *mode)?, *at))).collect::<Result<_, _>>()?;
    for (part, at) in parts.into_iter().filter(|(_, at)| *at != "/dev/shm") {
        attach(part.as_fd(), None, Path::new(at)).at(Step::Attach, at)?;
    }
    Ok(scratch)
}

/// A part of the writable filesystem, made if it is not there.
fn piece(scratch: &OwnedFd, name: &str, mode: u32) -> Result<OwnedFd, Failure> {
    let mode = Mode::from_raw_mode(mode);
    match rustix::fs::mkdirat(scratch, name, mode) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(errno) => return Err(errno).at(Step::MakeDirectory, name),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = rustix::fs::openat(scratch, name, flags, Mode::empty()).at(Step::MakeDirectory, name)?;
    rustix::fs::fchmod(&place, mode).at(Step::MakeDirectory, name)?;
    copy_whole_tree(place.as_fd()).at(Step::Copy, name)
}

fn devices(plan: &Plan, scratch: &OwnedFd, sources: &Sources) -> Result<(), Failure> {
    let dev = piece(scratch, "dev", 0o755)?;
    attach(dev.as_fd(), None, Path::new("/dev")).at(Step::Attach, "/dev")?;
    for name in ["/dev/pts", "/dev/shm"] {
        fs::create_dir(name).at(Step::MakeDirectory, name)?;
    }
    // The stranger may not open root's terminal by its own name, but everybody may open the one they are at.
    let by_name = |stream: BorrowedFd<'_>| plan.identity == Identity::Stranger && isatty(stream);
    let stream = |stream: BorrowedFd<'_>, number| if by_name(stream) { "tty" } else { number };
    let (stdin, stdout, stderr) = (rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr());
    let streams = [("stdin", stream(stdin, "fd/0")), ("stdout", stream(stdout, "fd/1")), ("stderr", stream(stderr, "fd/2"))];
    for (name, target) in streams.into_iter().chain([("fd", "/proc/self/fd"), ("ptmx", "pts/ptmx")]) {
        symlink(target, Path::new("/dev").join(name)).at(Step::Write, name)?;
    }
    for (device, name) in &sources.devices {
        attach_file(device, &Path::new("/dev").join(name))?;
    }
    attach(piece(scratch, "shm", 0o1777)?.as_fd(), None, Path::new("/dev/shm")).at(Step::Attach, "/dev/shm")?;
    let options = c"newinstance,ptmxmode=0666,mode=0620,max=256";
    mount("devpts", "/dev/pts", "devpts", MountFlags::NOSUID | MountFlags::NOEXEC, Some(options)).at(Step::Terminals, "")?;
    restrict(dev.as_fd(), Restrictions::READ_ONLY).at(Step::Attach, "/dev")
}

fn make_directory(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).at(Step::MakeDirectory, path)
}

pub(super) fn attach_directory(mount: &OwnedFd, at: &Path) -> Result<(), Failure> {
    make_directory(at)?;
    attach(mount.as_fd(), None, at).at(Step::Attach, at)
}

fn attach_file(mount: &OwnedFd, at: &Path) -> Result<(), Failure> {
    if let Some(parent) = at.parent() {
        make_directory(parent)?;
    }
    if fs::symlink_metadata(at).is_err() {
        fs::write(at, "").at(Step::Write, at)?;
    }
    attach(mount.as_fd(), None, at).at(Step::Attach, at)
}

/// A copy that nothing can be written to.
pub(super) fn read_only_copy(place: &OwnedFd, path: &Path) -> Result<OwnedFd, Failure> {
    let copy = copy_whole_tree(place.as_fd()).at(Step::Copy, path)?;
    restrict_tree(copy.as_fd(), Restrictions::READ_ONLY).at(Step::Copy, path)?;
    Ok(copy)
}
