//! What is taken from the host, while it can still be seen: copies of mounts, and the text of a few small files.

use std::ffi::OsString;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use belljar_linux::guarded::{copy_whole_tree, restrict_tree};
use belljar_linux::mount::Restrictions;
use rustix::fs::{Mode, OFlags};

use crate::line::{At, Failure, Step};
use crate::plan::{Plan, Shown};

/// Programs and libraries; on most systems all but the first are links into it.
const PROGRAMS: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

const QUIET: Restrictions = Restrictions::NO_SETUID.and(Restrictions::NO_DEVICES);
const SEALED: Restrictions = QUIET.and(Restrictions::READ_ONLY);

/// Mounts and where they go, and links.
#[derive(Debug, Default)]
pub(super) struct Sources {
    pub(super) mounts: Vec<(OwnedFd, PathBuf)>,
    pub(super) links: Vec<(PathBuf, OsString)>,
    pub(super) devices: Vec<(OwnedFd, &'static str)>,
    /// Shorter paths first, so that one shown below another lies on top.
    pub(super) shown: Vec<(OwnedFd, PathBuf, bool)>,
}

pub(super) fn gather(plan: &Plan) -> Result<Sources, Failure> {
    let mut sources = Sources::default();
    if plan.template_root.is_none() {
        for path in PROGRAMS.map(Path::new) {
            match fs::read_link(path) {
                Ok(target) => sources.links.push((path.to_owned(), target.into())),
                Err(_) if path.is_dir() => sources.mounts.push((sealed(path)?, path.to_owned())),
                Err(_) => {}
            }
        }
    }
    for name in DEVICES {
        let path = Path::new("/dev").join(name);
        let device = copy(&path)?;
        sources.devices.push((device, name));
    }
    for shown in &plan.shown {
        for (number, at) in shown.at.iter().enumerate() {
            sources.shown.push((show(shown, number)?, at.clone(), shown.is_directory));
        }
    }
    sources.shown.sort_by_key(|(_, at, _)| at.components().count());
    Ok(sources)
}

fn show(shown: &Shown, number: usize) -> Result<OwnedFd, Failure> {
    let mount = match shown.mounts.get(number) {
        Some(prepared) => prepared.try_clone().at(Step::Copy, &shown.path)?,
        None => {
            let place = open(&shown.path)?;
            let stat = rustix::fs::fstat(&place).at(Step::Copy, &shown.path)?;
            if (stat.st_dev, stat.st_ino) != shown.file {
                return Err(rustix::io::Errno::STALE).at(Step::Copy, &shown.path);
            }
            copy_whole_tree(place.as_fd()).at(Step::Copy, &shown.path)?
        }
    };
    restrict_tree(mount.as_fd(), if shown.writable { QUIET } else { SEALED }).at(Step::Copy, &shown.path)?;
    Ok(mount)
}

/// A copy that cannot be written to.
pub(super) fn sealed(path: &Path) -> Result<OwnedFd, Failure> {
    let mount = copy(path)?;
    restrict_tree(mount.as_fd(), SEALED).at(Step::Copy, path)?;
    Ok(mount)
}

fn copy(path: &Path) -> Result<OwnedFd, Failure> {
    copy_whole_tree(open(path)?.as_fd()).at(Step::Copy, path)
}

fn open(path: &Path) -> Result<OwnedFd, Failure> {
    rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).at(Step::Copy, path)
}
