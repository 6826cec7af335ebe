//! Copies of a process that has one thread.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::clone::{CLONE_INTO_CGROUP, CloneArguments};

/// Which namespaces of its own the copy gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespaces {
    /// None.
    Shared,
    /// User, process, mount, IPC, host name and cgroup namespaces.
    OwnButNetwork,
    /// All of these and the network.
    Own,
}

impl Namespaces {
    fn flags(self) -> libc::c_int {
        let own =
            libc::CLONE_NEWUSER | libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS | libc::CLONE_NEWCGROUP;
        match self {
            Self::Shared => 0,
            Self::OwnButNetwork => own,
            Self::Own => own | libc::CLONE_NEWNET,
        }
    }
}

/// Goes on twice: here, with the number of the copy, and in the copy, which runs `life` and ends with the code it gives.
///
/// Refused when this process has more than one thread: the others' locks would stay shut in the copy for ever.
pub fn copy_of_this_process(namespaces: Namespaces, cgroup: Option<BorrowedFd<'_>>, life: impl FnOnce() -> i32) -> io::Result<u32> {
    wait_to_be_alone()?;
    let flags = namespaces.flags();
    let answer = match cgroup {
        Some(cgroup) => {
            let arguments = CloneArguments {
                flags: u64::from(flags.cast_unsigned()) | CLONE_INTO_CGROUP,
                exit_signal: u64::from(libc::SIGCHLD.cast_unsigned()),
                cgroup: u64::from(cgroup.as_raw_fd().cast_unsigned()),
                ..CloneArguments::default()
            };
            // SAFETY: no memory is shared and no stack given, so this is a fork; with one thread, nothing in the copy is half-done.
            unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<CloneArguments>()) }
        }
        // The older call where it does: filters refuse the newer one, whose arguments they cannot read.
        // SAFETY: as above.
        None => unsafe { libc::syscall(libc::SYS_clone, libc::c_long::from(flags | libc::SIGCHLD), 0, 0, 0, 0) },
    };
    match u32::try_from(answer) {
        Err(_) => Err(io::Error::last_os_error()),
        Ok(0) => {
            let code = life();
            // SAFETY: ends the copy at once, without what this process would do at its own end.
            unsafe { libc::_exit(code) }
        }
        Ok(pid) => Ok(pid),
    }
}

/// A thread that was joined is gone from our memory, but counts for a moment longer.
fn wait_to_be_alone() -> io::Result<()> {
    const ATTEMPTS: usize = 1000;
    for _ in 0..ATTEMPTS {
        if std::fs::read_dir("/proc/self/task")?.count() == 1 {
            return Ok(());
        }
        std::thread::yield_now();
    }
    Err(io::Error::other("a process with several threads cannot be copied"))
}
