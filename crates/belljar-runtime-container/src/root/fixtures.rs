//! The filesystems in memory: devices, the few facts of `/sys` that programs look for, and places to write that are gone with the
//! sandbox. Their pages count against its memory limit.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use belljar_linux::launch::Attach;
use belljar_linux::mount::{self, FileIdentity, Restrictions};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use crate::errors::ContainerError;

const DEVICES: [(&str, u32, u32); 6] = [("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("random", 1, 8), ("urandom", 1, 9), ("tty", 5, 0)];
const LINKS: [(&str, &str); 5] = [
    ("ptmx", "pts/ptmx"),
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];
/// What `nproc`, the C library and allocators ask for.
const PROCESSOR_FILES: [&str; 3] = ["online", "possible", "present"];
const PROCESSORS: &str = "devices/system/cpu";

/// How long another sandbox may take to start.
const OTHERS_START: Duration = Duration::from_secs(2);
const NEXT_TRY: Duration = Duration::from_micros(200);

const SMALL: u64 = 256 << 10;
const RUN_BYTES: u64 = 64 << 20;
const FEW_FILES: u64 = 64;
const MANY_FILES: u64 = 65_536;

/// In the order in which they are attached.
pub(super) fn assemble(root_id: u32, memory_bytes: u64) -> Result<Vec<Attach>, ContainerError> {
    let failed = |at| move |source| ContainerError::MemoryFilesystem { at, source };
    let _as_its_root = FileIdentity::assume(root_id).map_err(failed("/dev"))?;
    let quiet = Restrictions::NO_SETUID.and(Restrictions::NO_DEVICES);
    let half = memory_bytes / 2;
    Ok(vec![
        Attach { mount: devices().map_err(failed("/dev"))?, at: c"/dev".to_owned() },
        Attach {
            mount: mount::memory_filesystem(half, MANY_FILES, 0o1777, quiet).map_err(failed("/dev/shm"))?,
            at: c"/dev/shm".to_owned(),
        },
        Attach { mount: facts().map_err(failed("/sys"))?, at: c"/sys".to_owned() },
        Attach {
            mount: mount::memory_filesystem(half.min(RUN_BYTES), MANY_FILES, 0o755, quiet).map_err(failed("/run"))?,
            at: c"/run".to_owned(),
        },
    ])
}

fn devices() -> io::Result<OwnedFd> {
    let mount = mount::memory_filesystem(SMALL, FEW_FILES, 0o755, Restrictions::NO_SETUID)?;
    let everyone = Mode::from_raw_mode(0o666);
    for (name, major, minor) in DEVICES {
        rustix::fs::mknodat(&mount, name, FileType::CharacterDevice, everyone, rustix::fs::makedev(major, minor))?;
        rustix::fs::chmodat(&mount, name, everyone, AtFlags::empty())?;
    }
    for (name, target) in LINKS {
        rustix::fs::symlinkat(target, &mount, name)?;
    }
    for directory in ["pts", "shm"] {
        make_directory(&mount, directory)?;
    }
    mount::restrict(mount.as_fd(), Restrictions::READ_ONLY.and(Restrictions::NO_EXEC))?;
    Ok(mount)
}

fn facts() -> io::Result<OwnedFd> {
    let quiet = Restrictions::NO_SETUID.and(Restrictions::NO_DEVICES).and(Restrictions::NO_EXEC);
    let mount = mount::memory_filesystem(SMALL, FEW_FILES, 0o555, quiet)?;
    let mut directory = String::new();
    for part in PROCESSORS.split('/') {
        directory.push_str(part);
        make_directory(&mount, &directory)?;
        directory.push('/');
    }
    for name in PROCESSOR_FILES {
        let content = std::fs::read(format!("/sys/{PROCESSORS}/{name}"))?;
        let readable = Mode::from_raw_mode(0o444);
        let file = rustix::fs::openat(
            &mount,
            format!("{PROCESSORS}/{name}"),
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC,
            readable,
        )?;
        rustix::io::write(&file, &content)?;
        rustix::fs::fchmod(&file, readable)?;
    }
    make_read_only(&mount)?;
    Ok(mount)
}

/// Another sandbox that starts at this moment has a copy of what we just wrote with, until it closes all it was born with: a millisecond or two.
fn make_read_only(mount: &OwnedFd) -> io::Result<()> {
    let started = Instant::now();
    loop {
        match mount::restrict(mount.as_fd(), Restrictions::READ_ONLY) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && started.elapsed() < OTHERS_START => std::thread::sleep(NEXT_TRY),
            done => return done,
        }
    }
}

fn make_directory(mount: &OwnedFd, path: &str) -> io::Result<()> {
    let mode = Mode::from_raw_mode(0o755);
    rustix::fs::mkdirat(mount, path, mode)?;
    Ok(rustix::fs::chmodat(mount, path, mode, AtFlags::empty())?)
}
