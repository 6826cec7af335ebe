//! The pool: one btrfs filesystem in an image file, with layers that sandboxes share and a subvolume for each sandbox.
//!
//! It is an image because a disk limit that stops root needs quotas that many root filesystems lack, and because the host's own
//! disk then cannot be filled by sandboxes. It is sparse, and freed blocks go back to the host.

mod captures;
mod volumes;

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use belljar_linux::btrfs::{self, QuotaKind};
use belljar_linux::loopdev;
use belljar_types::SandboxId;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::config::Places;
use crate::error::HostError;
use crate::tool::Tool;

pub(crate) use captures::{MEMORY, memory_bytes};
pub(crate) use volumes::OWNER;

const MKFS: Tool = Tool { program: "mkfs.btrfs", purpose: "make the pool", package: "btrfs-progs" };

/// What mkfs.btrfs makes a usable filesystem of.
const LEAST_POOL_BYTES: u64 = 256 << 20;

pub(crate) struct Pool {
    /// `None` once closed: an open directory would keep the pool mounted.
    open: RwLock<Option<Open>>,
    filesystem_id: String,
    quota: QuotaKind,
    /// Quota records whose subvolumes the kernel is still taking apart.
    dropped: Mutex<Vec<u64>>,
}

struct Open {
    filesystem: OwnedFd,
    subvolumes: OwnedFd,
    volumes: OwnedFd,
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Pool {
    /// Makes the image if there is none, mounts it if it is not, and puts its directories in order.
    pub(crate) fn open(places: &Places, bytes: u64) -> Result<Self, HostError> {
        let failed = |operation, path: &Path| {
            let path = path.to_owned();
            move |source| HostError::Pool { operation, path, source }
        };
        make_directory(&places.pool)?;
        if !is_mounted(&places.pool).map_err(failed("look at the mount", &places.pool))? {
            if !places.image.exists() {
                make_image(&places.image, bytes)?;
            }
            mount_image(&places.image, &places.pool).map_err(failed("mount the image", &places.image))?;
            tracing::info!(pool = %places.pool.display(), "pool mounted");
        }
        for directory in places.of_the_pool() {
            make_directory(directory)?;
        }
        empty(&places.staging).map_err(failed("empty the staging directory", &places.staging))?;
        let filesystem = btrfs::open_directory(&places.pool).map_err(failed("open the root", &places.pool))?;
        let quota = btrfs::enable_quotas(&filesystem).map_err(failed("turn on the quotas", &places.pool))?;
        let filesystem_id = btrfs::filesystem_id(&filesystem).map_err(failed("read the id", &places.pool))?;
        let subvolumes = btrfs::open_directory(&places.subvolumes).map_err(failed("open the sandboxes", &places.subvolumes))?;
        let volumes = btrfs::open_directory(&places.volumes).map_err(failed("open the volumes", &places.volumes))?;
        let open = RwLock::new(Some(Open { filesystem, subvolumes, volumes }));
        let pool = Self { open, filesystem_id, quota, dropped: Mutex::default() };
        pool.find_dropped().map_err(failed("list the quotas", &places.pool))?;
        Ok(pool)
    }

    /// Makes a sandbox's disk with its limit: `upper` is the guest's `/`, `work` is overlayfs's own.
    pub(crate) fn create(&self, id: &SandboxId, bytes: u64) -> Result<(), HostError> {
        let made = self.with(|open| {
            btrfs::create_subvolume(&open.subvolumes, OsStr::new(id.as_str()))?;
            let directory = rustix::fs::openat(&open.subvolumes, id.as_str(), DIRECTORY, Mode::empty())?;
            rustix::fs::fchmod(&directory, Mode::RWXU)?;
            rustix::fs::mkdirat(&directory, "upper", Mode::RWXU)?;
            // Set apart from making it, since the process's mask would be taken off.
            rustix::fs::chmodat(&directory, "upper", Mode::from_raw_mode(0o755), AtFlags::empty())?;
            rustix::fs::mkdirat(&directory, "work", Mode::RWXU)?;
            btrfs::limit_subvolume(&open.filesystem, btrfs::subvolume_id(&directory)?, bytes)
        });
        made.map_err(|source| HostError::Disk { operation: "make", id: id.clone(), source })
    }

    /// Changes the limit of a sandbox's disk.
    pub(crate) fn limit(&self, id: &SandboxId, bytes: u64) -> Result<(), HostError> {
        let limited = self.with(|open| btrfs::limit_subvolume(&open.filesystem, open.subvolume_id(id)?, bytes));
        limited.map_err(|source| HostError::Disk { operation: "limit", id: id.clone(), source })
    }

    /// Bytes that a sandbox's disk holds.
    pub(crate) fn usage(&self, id: &SandboxId) -> Result<u64, HostError> {
        let measured = self.with(|open| btrfs::subvolume_usage(&self.filesystem_id, open.subvolume_id(id)?));
        measured.map_err(|source| HostError::Disk { operation: "measure", id: id.clone(), source })
    }

    /// Drops a sandbox's disk; does nothing if there is none.
    pub(crate) fn remove(&self, id: &SandboxId) -> Result<(), HostError> {
        let removed = self.with(|open| {
            let subvolume = match open.subvolume_id(id) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                other => other?,
            };
            btrfs::delete_subvolume(&open.subvolumes, OsStr::new(id.as_str()))?;
            self.lock_dropped().push(subvolume);
            Ok(())
        });
        removed.map_err(|source| HostError::Disk { operation: "remove", id: id.clone(), source })
    }

    /// Removes the quota records of dropped disks that the kernel is done with; returns how many it still works on. A record whose disk is
    /// gone but whose blocks live on in a snapshot stays until those are gone too.
    pub(crate) fn remove_dropped_quotas(&self) -> usize {
        let waiting = std::mem::take(&mut *self.lock_dropped());
        let (mut left, mut still_going) = (Vec::new(), 0);
        for id in waiting {
            // Asked first: one that is gone by the time its record is refused would be taken for one that a snapshot holds.
            let going = self.with(|open| btrfs::subvolume_is_going(&open.filesystem, id)).unwrap_or(true);
            // Whatever the kernel says against it now is tried again later, at the latest when the pool is next opened.
            if !self.with(|open| btrfs::remove_quota_record(&open.filesystem, id)).unwrap_or(false) {
                left.push(id);
                still_going += usize::from(going);
            }
        }
        self.lock_dropped().extend(left);
        still_going
    }

    /// Writes everything out and sets the kernel on taking dropped subvolumes apart.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.with(|open| btrfs::sync(&open.filesystem))
    }

    pub(crate) fn quota(&self) -> QuotaKind {
        self.quota
    }

    /// Free and all bytes of the pool.
    pub(crate) fn space(&self) -> io::Result<(u64, u64)> {
        let space = self.with(|open| Ok(rustix::fs::fstatvfs(&open.filesystem)?))?;
        Ok((space.f_bavail * space.f_frsize, space.f_blocks * space.f_frsize))
    }

    /// Unmounts the pool; nothing may use it any more.
    pub(crate) fn close(&self, places: &Places) -> Result<(), HostError> {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        if open.take().is_some() {
            unmount_patiently(&places.pool).map_err(|errno| HostError::Pool {
                operation: "unmount the image",
                path: places.pool.clone(),
                source: errno.into(),
            })?;
        }
        Ok(())
    }

    /// What a crash between dropping a subvolume and removing its quota left.
    fn find_dropped(&self) -> io::Result<()> {
        self.sync()?;
        for id in btrfs::quota_records(&self.filesystem_id)? {
            if !self.with(|open| btrfs::subvolume_exists(&open.filesystem, id))? {
                self.lock_dropped().push(id);
            }
        }
        Ok(())
    }

    fn with<T>(&self, work: impl FnOnce(&Open) -> io::Result<T>) -> io::Result<T> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        work(open.as_ref().ok_or_else(|| io::Error::new(io::ErrorKind::NotConnected, "the pool was closed"))?)
    }

    fn lock_dropped(&self) -> MutexGuard<'_, Vec<u64>> {
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn subvolume_id(&self, id: &SandboxId) -> io::Result<u64> {
        Self::id_in(&self.subvolumes, id.as_str())
    }

    fn id_in(directory: &OwnedFd, name: &str) -> io::Result<u64> {
        btrfs::subvolume_id(rustix::fs::openat(directory, name, DIRECTORY, Mode::empty())?)
    }
}

/// Makes a directory that only root may look into, or takes the one that is there.
pub(crate) fn make_directory(path: &Path) -> Result<(), HostError> {
    let made = DirBuilder::new().mode(0o700).recursive(true).create(path);
    made.map_err(|source| HostError::Files { operation: "make the directory", path: path.to_owned(), source })
}

fn make_image(image: &Path, bytes: u64) -> Result<(), HostError> {
    let failed = |source| HostError::Pool { operation: "make the image", path: image.to_owned(), source };
    // Under another name until it is whole, so that a crash leaves no half-made pool.
    let next = image.with_extension("next");
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&next).map_err(failed)?;
    file.set_len(bytes.max(LEAST_POOL_BYTES)).map_err(failed)?;
    // What is in the pool can be made again, so its metadata is kept once, not twice.
    let output = Command::new("mkfs.btrfs").args(["-q", "-f", "-m", "single", "-d", "single"]).arg(&next).stdin(Stdio::null()).output();
    MKFS.judge(output)?;
    fs::rename(next, image).map_err(failed)
}

fn mount_image(image: &Path, target: &Path) -> io::Result<()> {
    let file = File::options().read(true).write(true).open(image)?;
    // A mount in some other namespace may still hold the image; a second device for it would corrupt it.
    let device = match loopdev::find(image)? {
        Some(device) => device,
        None => loopdev::attach(&file)?,
    };
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOATIME;
    Ok(mount(device.path(), target, "btrfs", flags, c"discard=async")?)
}

/// A mount point is on another device than the directory it is in.
fn is_mounted(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let parent = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    Ok(fs::metadata(path)?.dev() != fs::metadata(parent)?.dev())
}

fn empty(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() { fs::remove_dir_all(entry.path())? } else { fs::remove_file(entry.path())? }
    }
    Ok(())
}

/// A program that this process is just starting, for whatever reason, has copies of its descriptors until its first instruction.
fn unmount_patiently(pool: &Path) -> Result<(), Errno> {
    const PATIENCE: Duration = Duration::from_secs(5);
    let started = Instant::now();
    loop {
        match unmount(pool, UnmountFlags::empty()) {
            Err(Errno::BUSY) if started.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(20)),
            unmounted => return unmounted,
        }
    }
}
