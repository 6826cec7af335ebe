//! Covers: an empty file or directory that nobody may open, over what must not be seen; and mounts that keep files as they are.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use belljar_linux::guarded::{attach, copy_whole_tree};
use belljar_linux::resolve::open_beneath;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::mount::mount_bind;

use super::root::read_only_copy;
use crate::line::{At, Failure, Step};
use crate::protect::Protection;

/// Of `/proc`: what tells about the host and nothing about the sandbox. What only the host's root may read needs no cover, because nobody
/// inside is the host's root.
const OF_THE_HOST: [&str; 34] = [
    "kcore",
    "keys",
    "key-users",
    "timer_list",
    "timer_stats",
    "sched_debug",
    "latency_stats",
    "interrupts",
    "kallsyms",
    "kmsg",
    "sysrq-trigger",
    "cmdline",
    "modules",
    "swaps",
    "partitions",
    "diskstats",
    "slabinfo",
    "vmallocinfo",
    "iomem",
    "ioports",
    "config.gz",
    "softirqs",
    "buddyinfo",
    "pagetypeinfo",
    "zoneinfo",
    "locks",
    "acpi",
    "asound",
    "scsi",
    "driver",
    "firmware",
    "bus",
    "fs",
    "irq",
];

/// What lies over hidden things.
#[derive(Debug)]
pub(super) struct Covers {
    file: OwnedFd,
    directory: OwnedFd,
}

impl Covers {
    /// Made in the writable filesystem, at its root, where nothing inside can reach it.
    pub(super) fn make(scratch: &OwnedFd) -> Result<Self, Failure> {
        const NAMES: [&str; 2] = ["cover-file", "cover-directory"];
        let [file, directory] = NAMES;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(scratch, file, flags, Mode::empty()).at(Step::Mask, file)?;
        rustix::fs::mkdirat(scratch, directory, Mode::RUSR).at(Step::Mask, directory)?;
        let open = rustix::fs::openat(scratch, directory, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let open = open.at(Step::Mask, directory)?;
        rustix::fs::fchmod(&open, Mode::empty()).at(Step::Mask, directory)?;
        Ok(Self { file, directory: open })
    }

    fn over(&self, place: &OwnedFd, path: &Path, is_directory: bool) -> Result<(), Failure> {
        let cover = read_only_copy(if is_directory { &self.directory } else { &self.file }, path)?;
        attach(cover.as_fd(), Some(place.as_fd()), Path::new("")).at(Step::Mask, path)
    }

    pub(super) fn mask_processes(&self) -> Result<(), Failure> {
        const EVERYBODY: u32 = 0o007;
        for path in OF_THE_HOST.map(|name| Path::new("/proc").join(name)) {
            let Ok(found) = fs::symlink_metadata(&path) else { continue };
            if found.is_symlink() || found.permissions().mode() & EVERYBODY == 0 {
                continue;
            }
            if found.is_dir() {
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let place = rustix::fs::open(&path, flags, Mode::empty()).at(Step::Mask, &path)?;
                self.over(&place, &path, true)?;
            } else {
                // One call where a cover takes five, and reads as empty: programs that look there go on.
                mount_bind("/dev/null", &path).at(Step::Mask, &path)?;
            }
        }
        let system = Path::new("/proc/sys");
        let place = rustix::fs::open(system, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).at(Step::Mask, system)?;
        let copy = read_only_copy(&place, system)?;
        attach(copy.as_fd(), Some(place.as_fd()), Path::new("")).at(Step::Mask, system)
    }

    /// Hides and keeps what was found in the tree. The paths are opened without following any link, once, and mounted on as opened.
    pub(super) fn protect(&self, tree: &Path, paths: &[(PathBuf, Protection)]) -> Result<(), Failure> {
        let root = rustix::fs::open(tree, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).at(Step::Protect, tree)?;
        for (path, protection) in paths {
            let place = open_beneath(&root, path, OFlags::PATH, Mode::empty()).at(Step::Protect, path)?;
            let kind = rustix::fs::fstat(&place).map(|stat| FileType::from_raw_mode(stat.st_mode)).at(Step::Protect, path)?;
            let kept = match protection {
                Protection::Hidden => {
                    self.over(&place, path, kind == FileType::Directory)?;
                    continue;
                }
                Protection::ReadOnly => read_only_copy(&place, path)?,
                Protection::Pinned => copy_whole_tree(place.as_fd()).at(Step::Protect, path)?,
            };
            attach(kept.as_fd(), Some(place.as_fd()), Path::new("")).at(Step::Protect, path)?;
        }
        Ok(())
    }
}
