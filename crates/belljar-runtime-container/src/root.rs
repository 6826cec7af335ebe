//! What a sandbox sees when it opens its eyes: its layers as `/`, and small filesystems of its own for `/dev`, `/sys` and `/run`.
//!
//! All of it is mounted by the host into thin air and only moved into place by the sandbox's first process. Every owner inside is an
//! id of the sandbox's own range; on disk the ids are the guest's own, so layers are shared by all sandboxes.

mod fixtures;
mod volumes;

use std::collections::HashSet;
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use belljar_host::Reservation;
use belljar_linux::launch::Attach;
use belljar_linux::mount::{self, Overlay, Restrictions};
use belljar_linux::resolve;
use rustix::fs::{Mode, OFlags};

use crate::errors::ContainerError;

/// A root and what is mounted on it, not attached yet.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) root: OwnedFd,
    pub(crate) mounts: Vec<Attach>,
}

/// Directories that must be real directories whatever the template says, because something is mounted on them or everybody needs
/// them, with their modes.
const MOUNT_POINTS: [(&str, u32); 5] = [("proc", 0o555), ("sys", 0o555), ("dev", 0o755), ("run", 0o755), ("tmp", 0o1777)];

/// Files of `/proc` that tell about the host and nothing about the sandbox.
const MASKED_FILES: [&str; 26] = [
    "/proc/kcore",
    "/proc/keys",
    "/proc/key-users",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/latency_stats",
    "/proc/interrupts",
    "/proc/kallsyms",
    "/proc/kmsg",
    "/proc/sysrq-trigger",
    "/proc/cmdline",
    "/proc/modules",
    "/proc/swaps",
    "/proc/partitions",
    "/proc/diskstats",
    "/proc/slabinfo",
    "/proc/vmallocinfo",
    "/proc/iomem",
    "/proc/ioports",
    "/proc/config.gz",
    "/proc/softirqs",
    "/proc/buddyinfo",
    "/proc/pagetypeinfo",
    "/proc/zoneinfo",
    "/proc/locks",
];
/// Buses, interrupts and filesystems of the host, with the names of its devices.
const MASKED_DIRECTORIES: [&str; 8] =
    ["/proc/acpi", "/proc/asound", "/proc/scsi", "/proc/driver", "/proc/firmware", "/proc/bus", "/proc/fs", "/proc/irq"];
const READ_ONLY: [&str; 1] = ["/proc/sys"];

/// What is hidden of `/proc`; only what this kernel has, since every sandbox pays for each.
#[derive(Debug, Clone)]
pub(crate) struct Masks {
    pub(crate) files: Vec<CString>,
    pub(crate) directories: Vec<CString>,
    pub(crate) read_only: Vec<CString>,
}

impl Masks {
    pub(crate) fn of_this_kernel() -> Self {
        let there =
            |paths: &[&str]| paths.iter().filter(|path| Path::new(path).exists()).filter_map(|path| CString::new(*path).ok()).collect();
        Self { files: there(&MASKED_FILES), directories: there(&MASKED_DIRECTORIES), read_only: there(&READ_ONLY) }
    }
}

/// Puts a sandbox's root together.
pub(crate) fn assemble(reservation: &Reservation, users: &OwnedFd) -> Result<Root, ContainerError> {
    make_mount_points(&reservation.upper)?;
    // An overlay refuses to have a directory twice, and nothing is gained by it.
    let mut seen = HashSet::new();
    let unique = reservation.layers.iter().rev().filter(|layer| seen.insert(*layer)).collect::<Vec<_>>();
    let layers = unique.into_iter().rev().map(|layer| mapped(layer, users, Restrictions::NONE)).collect::<Result<Vec<_>, _>>()?;
    let disk = reservation.upper.parent().unwrap_or(&reservation.upper);
    let writable = mapped(disk, users, Restrictions::NONE)?;
    let lower: Vec<_> = layers.iter().map(AsFd::as_fd).collect();
    let overlay = Overlay { lower: &lower, writable: writable.as_fd(), root_id: reservation.slot.uid_base };
    let root = overlay.mount(Restrictions::NO_DEVICES.and(Restrictions::NO_SETUID));
    let root = root.map_err(|source| ContainerError::Overlay { layers: lower.len(), source })?;
    let mut mounts = fixtures::assemble(reservation.slot.uid_base, reservation.record.spec.limits.memory_bytes)?;
    mounts.extend(volumes::assemble(&root, &reservation.volumes, users, reservation.slot.uid_base)?);
    Ok(Root { root, mounts })
}

/// In the upper directory, where they win over whatever a layer has under these names.
fn make_mount_points(upper: &Path) -> Result<(), ContainerError> {
    let opened = rustix::fs::open(upper, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let opened = opened.map_err(|errno| ContainerError::Open { path: upper.to_owned(), source: errno.into() })?;
    for (name, mode) in MOUNT_POINTS {
        let mode = Mode::from_raw_mode(mode);
        // In a root that was used before there may be anything; unlinking follows nothing, and leaves a directory alone.
        let _ = rustix::fs::unlinkat(&opened, name, rustix::fs::AtFlags::empty());
        let made = resolve::make_directory_beneath(&opened, Path::new(name), mode);
        made.and_then(|made| Ok(rustix::fs::fchmod(made, mode)?)).map_err(|source| ContainerError::MountPoint { name, source })?;
    }
    Ok(())
}

fn mapped(path: &Path, users: &OwnedFd, restrictions: Restrictions) -> Result<OwnedFd, ContainerError> {
    let map = || {
        let mount = mount::copy_tree(path)?;
        mount::map_owners(mount.as_fd(), users.as_fd(), restrictions)?;
        Ok(mount)
    };
    map().map_err(|source| ContainerError::MapOwners { path: path.to_owned(), source })
}
