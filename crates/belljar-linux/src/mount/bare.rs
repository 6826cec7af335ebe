//! A mount namespace with next to nothing in it.
//!
//! A new mount namespace begins as a copy of its maker's, and a host that runs a thousand sandboxes has thousands of mounts: each
//! launch would copy all of them only to drop them again. Launches start from this one instead. It holds a `/proc`, because the
//! kernel lets a user namespace mount its own only where a whole one is in sight, and a directory to attach the new root to.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::thread;

use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount};
use rustix::thread::UnshareFlags;

/// Any directory of the host does: it is covered in the new namespace only.
const STAGE: &str = "/dev";

/// Makes one. It lives as long as the descriptor.
pub fn bare_namespace() -> io::Result<OwnedFd> {
    // A thread of its own, because it never comes back from there.
    let made = thread::Builder::new().name("bare-mounts".into()).spawn(make)?;
    made.join().unwrap_or_else(|_| Err(io::Error::other("the thread that makes mount namespaces panicked")))
}

fn make() -> io::Result<OwnedFd> {
    // SAFETY: concerns the mounts and directories of this thread only, which ends right after; no descriptor table is touched.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::FS) }?;
    let namespace = File::open("/proc/thread-self/ns/mnt")?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let quiet = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("bare", STAGE, "tmpfs", quiet, Some(c"size=64k,mode=755"))?;
    rustix::process::chdir(STAGE)?;
    for directory in ["proc", "dev"] {
        rustix::fs::mkdir(directory, rustix::fs::Mode::from_raw_mode(0o755))?;
    }
    mount("proc", "proc", "proc", quiet, None)?;
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    Ok(namespace.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_not_ours_and_ours_is_as_it_was() {
        let before = std::fs::read_to_string("/proc/self/mountinfo").unwrap().lines().count();
        let namespace = bare_namespace().unwrap();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&namespace));
        assert_ne!(std::fs::read_link(path).unwrap(), std::fs::read_link("/proc/self/ns/mnt").unwrap());
        assert!(std::path::Path::new("/dev/null").exists());
        // Others mount and unmount meanwhile, but not by the dozen.
        assert!(std::fs::read_to_string("/proc/self/mountinfo").unwrap().lines().count().abs_diff(before) < 12);
    }
}
