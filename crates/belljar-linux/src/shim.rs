//! Starting a program that sees other mounts than we do.
//!
//! No process of our own is needed for it: a mount namespace belongs to a thread, so a short-lived thread leaves ours for one of its own,
//! mounts there with ordinary code and errors, and starts the program from there. When the last process in that namespace ends, its
//! mounts are gone.

use std::io;

use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::UnshareFlags;

/// Runs `work` in a thread with a mount namespace of its own, in which nothing propagates to or from the host's.
pub fn in_private_mounts<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("private-mounts".into()).spawn_scoped(scope, || {
            leave_shared_mounts()?;
            work()
        })?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread with private mounts panicked")))
    })
}

fn leave_shared_mounts() -> io::Result<()> {
    // SAFETY: only this thread's view of mounts and its own working directory are split off; descriptors stay shared, so no
    // descriptor that other code relies on changes its meaning.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::mount::MountFlags;

    use super::*;

    #[test]
    fn what_is_mounted_inside_is_seen_by_the_program_and_not_by_us() {
        let place = tempfile::tempdir().unwrap();
        let output = in_private_mounts(|| {
            rustix::mount::mount("none", place.path(), "tmpfs", MountFlags::empty(), None::<&std::ffi::CStr>)?;
            std::fs::write(place.path().join("inside"), "seen")?;
            Command::new("cat").arg(place.path().join("inside")).output()
        });
        assert_eq!(output.unwrap().stdout, b"seen");
        assert!(!place.path().join("inside").exists());
    }
}
