//! Starting a program that sees other mounts than we do, inside a control group from its first instruction on.
//!
//! A whole process is needed for neither: a mount namespace belongs to a thread, so a short-lived thread leaves ours for one of its own,
//! mounts there with ordinary code and errors, and starts the program from there. When the last process in that namespace ends, its
//! mounts are gone.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

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

/// Makes the program that `command` starts join a control group before its first instruction, so that nothing it does or starts escapes
/// the group's limits. `joins` are the files of the group to write to, one for each hierarchy; a child that was just forked has one thread.
pub fn join_before_exec(command: &mut Command, joins: &[PathBuf]) -> io::Result<()> {
    let open = |path| OpenOptions::new().write(true).open(path).map(OwnedFd::from);
    let files = joins.iter().map(open).collect::<io::Result<Vec<_>>>()?;
    // SAFETY: the closure runs in the forked child and makes nothing but `write` calls on descriptors it owns, which is
    // async-signal-safe; it allocates nothing, takes no lock, and an error is a plain number.
    unsafe { command.pre_exec(move || files.iter().try_for_each(attach_self)) };
    Ok(())
}

fn attach_self(procs: &OwnedFd) -> io::Result<()> {
    const MYSELF: &[u8] = b"0";
    // SAFETY: the bytes are static and the length is theirs; the descriptor is open for as long as it is borrowed.
    let written = unsafe { libc::write(procs.as_raw_fd(), MYSELF.as_ptr().cast(), MYSELF.len()) };
    if written == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn the_program_is_in_the_group_from_the_start() {
        let Some(root) = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].iter().map(PathBuf::from).find(|p| p.join("cgroup.procs").exists())
        else {
            return;
        };
        let name = format!("belljar-shim-test-{}", std::process::id());
        std::fs::create_dir(root.join(&name)).unwrap();
        let mut command = Command::new("cat");
        command.arg("/proc/self/cgroup");
        join_before_exec(&mut command, &[root.join(&name).join("cgroup.procs")]).unwrap();
        let output = command.output();
        std::fs::remove_dir(root.join(&name)).unwrap();
        let groups = String::from_utf8(output.unwrap().stdout).unwrap();
        assert!(groups.contains(&name), "{groups}");
    }

    #[test]
    fn a_group_that_is_gone_is_an_error_before_anything_starts() {
        assert!(join_before_exec(&mut Command::new("true"), &["/nowhere/cgroup.procs".into()]).is_err());
    }
}
