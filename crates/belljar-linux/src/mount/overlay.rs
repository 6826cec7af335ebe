//! Overlays: many read-only layers and one writable directory, seen as one tree.
//!
//! Since Linux 6.15 an overlay takes layers that are attached nowhere, and it is made of them directly. Kernels before refuse them, and
//! get them in a place of their own: see [`attached`]. Which of the two it is, is found out once, by trying.

mod attached;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use rustix::fs::{Mode, mkdirat};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, fsconfig_set_string, fsmount, fsopen};

use super::{FileIdentity, Restrictions, memory_filesystem};

/// An overlay root, and what it is made of.
///
/// Layers and the writable directory are detached mounts ([`super::copy_tree`]), or directories opened in the caller's own mount
/// namespace. Detached ones may be attached meanwhile, so nothing else can be made of them afterwards.
#[derive(Debug)]
pub struct Overlay<'a> {
    /// Read-only layers, lowest first.
    pub lower: &'a [BorrowedFd<'a>],
    /// A mount with the directories `upper` and `work` in its root; both must be seen through the same mount.
    pub writable: BorrowedFd<'a>,
    /// The host's id of whoever is root in the layers as they are mapped.
    pub root_id: u32,
}

/// The most read-only layers that the kernel puts together.
pub const LAYERS_MAX: usize = 500;

/// What the overlay says its own source is: the only name of it that a sandbox sees.
const SOURCE: &str = "belljar";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The layers are named by descriptor.
    Direct,
    /// The layers are attached for a moment.
    Attached,
}

impl Overlay<'_> {
    /// Mounts it in the caller's user namespace.
    ///
    /// The options shown inside hold no path of the host. `volatile`: nothing is synced when it goes, because a sandbox that is gone
    /// needs none of it. `redirect_dir`: a directory of a lower layer can be renamed, which package managers do.
    pub fn mount(&self, restrictions: Restrictions) -> io::Result<OwnedFd> {
        if self.lower.len() > LAYERS_MAX {
            let words = format!("an overlay has at most {LAYERS_MAX} layers, not {}", self.lower.len());
            return Err(io::Error::new(io::ErrorKind::ArgumentListTooLong, words));
        }
        let mount = match way()? {
            Way::Direct => self.mount_directly(restrictions)?,
            Way::Attached => attached::mount(self, restrictions)?,
        };
        // An overlay that cannot use its work directory mounts all the same, but read-only.
        if rustix::fs::fstatvfs(&mount)?.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) {
            return Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "the kernel cannot write to these layers"));
        }
        Ok(mount)
    }

    fn mount_directly(&self, restrictions: Restrictions) -> io::Result<OwnedFd> {
        let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_set_string(context.as_fd(), "source", SOURCE)?;
        for layer in self.lower.iter().rev() {
            fsconfig_set_string(context.as_fd(), "lowerdir+", by_descriptor(*layer))?;
        }
        let writable = by_descriptor(self.writable);
        fsconfig_set_string(context.as_fd(), "upperdir", format!("{writable}/upper"))?;
        fsconfig_set_string(context.as_fd(), "workdir", format!("{writable}/work"))?;
        fsconfig_set_string(context.as_fd(), "redirect_dir", "on")?;
        rustix::mount::fsconfig_set_flag(context.as_fd(), "volatile")?;
        let as_its_root = FileIdentity::assume(self.root_id)?;
        rustix::mount::fsconfig_create(context.as_fd())?;
        drop(as_its_root);
        Ok(fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, restrictions.0)?)
    }
}

fn by_descriptor(mount: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", mount.as_raw_fd())
}

/// How this kernel wants it. An answer is remembered; what says nothing about the kernel is not.
fn way() -> io::Result<Way> {
    static WAY: OnceLock<Way> = OnceLock::new();
    if let Some(known) = WAY.get() {
        return Ok(*known);
    }
    let (layer, writable) = trial_layers()?;
    let trial = Overlay { lower: &[layer.as_fd()], writable: writable.as_fd(), root_id: 0 };
    let found = match trial.mount_directly(Restrictions::NONE) {
        Ok(_) => Way::Direct,
        Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => Way::Attached,
        Err(error) => return Err(error),
    };
    Ok(*WAY.get_or_init(|| found))
}

/// The least that an overlay can be made of.
fn trial_layers() -> io::Result<(OwnedFd, OwnedFd)> {
    let filesystem = || memory_filesystem(64 << 10, 16, 0o700, Restrictions::NONE);
    let (layer, writable) = (filesystem()?, filesystem()?);
    for name in ["upper", "work"] {
        mkdirat(&writable, name, Mode::RWXU)?;
    }
    Ok((layer, writable))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use rustix::fs::{AtFlags, CWD, OFlags, StatVfsMountFlags, openat, statat};
    use rustix::mount::{MoveMountFlags, move_mount};

    use super::*;
    use crate::shim::in_private_mounts;

    type Mount = fn(&Overlay<'_>, Restrictions) -> io::Result<OwnedFd>;

    const AS_THIS_KERNEL_WANTS: Mount = |overlay, restrictions| overlay.mount(restrictions);

    /// Of layers that hold a file with their number each, and one that all have.
    fn of_layers(number: usize, mount: Mount) -> io::Result<OwnedFd> {
        let (_, writable) = trial_layers()?;
        let layers: Vec<OwnedFd> = (0..number).map(|_| memory_filesystem(64 << 10, 8, 0o755, Restrictions::NONE).unwrap()).collect();
        for (number, layer) in layers.iter().enumerate() {
            for name in [number.to_string(), "top".to_owned()] {
                let file = openat(layer, name, OFlags::CREATE | OFlags::WRONLY, Mode::RUSR)?;
                rustix::io::write(file, number.to_string().as_bytes())?;
            }
        }
        let lower: Vec<_> = layers.iter().map(AsFd::as_fd).collect();
        mount(&Overlay { lower: &lower, writable: writable.as_fd(), root_id: 0 }, Restrictions::NO_DEVICES.and(Restrictions::NO_EXEC))
    }

    fn assert_whole(overlay: &OwnedFd, layers: usize) {
        for number in 0..layers {
            statat(overlay, number.to_string(), AtFlags::empty()).unwrap();
        }
        let root = PathBuf::from(by_descriptor(overlay.as_fd()));
        assert_eq!(fs::read_to_string(root.join("top")).unwrap(), (layers - 1).to_string());
        fs::write(root.join("made"), "written").unwrap();
        assert_eq!(fs::read_to_string(root.join("made")).unwrap(), "written");
        let flags = rustix::fs::fstatvfs(overlay).unwrap().f_flag;
        assert!(
            flags.contains(StatVfsMountFlags::NODEV | StatVfsMountFlags::NOEXEC) && !flags.contains(StatVfsMountFlags::NOSUID),
            "{flags:?}"
        );
    }

    #[test]
    fn the_most_layers_are_taken_and_one_more_is_told() {
        for layers in [1, 60, LAYERS_MAX] {
            assert_whole(&of_layers(layers, AS_THIS_KERNEL_WANTS).unwrap(), layers);
        }
        let words = of_layers(LAYERS_MAX + 1, AS_THIS_KERNEL_WANTS).unwrap_err().to_string();
        assert_eq!(words, "an overlay has at most 500 layers, not 501");
    }

    #[test]
    fn the_way_of_kernels_before_6_15_leads_to_the_same() {
        for layers in [1, 60, LAYERS_MAX] {
            assert_whole(&of_layers(layers, attached::mount).unwrap(), layers);
        }
    }

    #[test]
    fn its_options_name_nothing_of_the_host_and_nobody_else_has_it() {
        for mount in [AS_THIS_KERNEL_WANTS, attached::mount] {
            let overlay = of_layers(3, mount).unwrap();
            let place = tempfile::tempdir().unwrap();
            let seen = in_private_mounts(|| {
                move_mount(&overlay, "", CWD, place.path(), MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
                fs::read_to_string("/proc/thread-self/mountinfo")
            });
            let line = seen.unwrap().lines().find(|line| line.contains(place.path().to_str().unwrap())).unwrap().to_owned();
            let options = line.split_once(" - overlay belljar ").unwrap().1;
            for part in options.split([',', ':', '=']).filter(|part| part.contains('/')) {
                assert!(part.starts_with("/proc/self/fd/") || part.starts_with("w/"), "{part} in {line}");
            }
            assert!(!fs::read_to_string("/proc/self/mountinfo").unwrap().contains(place.path().to_str().unwrap()));
        }
    }
}
