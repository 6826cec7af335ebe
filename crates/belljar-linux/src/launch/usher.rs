//! The usher: a process of our memory and descriptors that enters the namespaces which a thread with siblings may not enter.
//!
//! Runs between `clone` and `_exit` in the server's memory: system calls only, no allocation, no lock, no panic.

use std::ffi::{c_int, c_void};
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;

use super::{Briefing, Step, first};
use crate::clone::clone_telling;

/// The error number of the last system call, as a failure to note.
pub(super) struct Errno(pub(super) c_int);

pub(super) fn last_errno() -> Errno {
    // SAFETY: takes nothing; the location is valid for the thread whose memory we run in, and that thread sleeps.
    let location = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    Errno(unsafe { location.read() })
}

/// Turns a system call's answer into a result.
pub(super) fn check(answer: i64) -> Result<i64, Errno> {
    if answer < 0 { Err(last_errno()) } else { Ok(answer) }
}

pub(super) extern "C" fn run(argument: *mut c_void) -> c_int {
    // SAFETY: `launch` passed a pointer to a `Briefing` and sleeps until this process has ended.
    let briefing = unsafe { &*argument.cast::<Briefing<'_>>() };
    match usher(briefing, argument) {
        Ok(()) => 0,
        Err(Errno(errno)) => {
            briefing.progress.errno.store(errno, Ordering::Release);
            1
        }
    }
}

fn usher(briefing: &Briefing<'_>, argument: *mut c_void) -> Result<(), Errno> {
    let Briefing { launch, progress, .. } = briefing;
    progress.at(Step::DieWithServer);
    die_with_parent(true)?;
    // SAFETY: `getppid` only answers.
    if unsafe { libc::getppid() } != briefing.server {
        return Err(Errno(libc::ESRCH));
    }
    progress.at(Step::JoinCgroup);
    for cgroup in &launch.cgroup.tasks {
        // "0" is the thread that writes it, and a thread that moves only itself need not wait for anybody.
        // SAFETY: one byte of a static string, to an open descriptor.
        check(unsafe { libc::write(cgroup.as_raw_fd(), c"0".as_ptr().cast(), 1) } as i64)?;
    }
    set_oom_score(briefing);
    progress.at(Step::JoinNetwork);
    // SAFETY: an open descriptor and a flag.
    check(i64::from(unsafe { libc::setns(launch.network.as_raw_fd(), libc::CLONE_NEWNET) }))?;
    progress.at(Step::JoinMounts);
    // SAFETY: as above.
    check(i64::from(unsafe { libc::setns(launch.mounts_from.as_raw_fd(), libc::CLONE_NEWNS) }))?;
    progress.at(Step::JoinUsers);
    // SAFETY: as above.
    check(i64::from(unsafe { libc::setns(launch.users.as_raw_fd(), libc::CLONE_NEWUSER) }))?;
    // Changing credentials has undone it.
    die_with_parent(true)?;
    progress.at(Step::CloneFirst);
    let flags = libc::CLONE_VM
        | libc::CLONE_VFORK
        | libc::CLONE_PARENT
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWCGROUP;
    // The kernel writes its number down before it runs: this process can be killed while it sleeps, and then somebody has to see to the first one.
    let told = progress.pid.as_ptr();
    // SAFETY: the first process makes system calls only, on a stack of its own; this process sleeps until it is out of our memory, and if it is killed
    // the server sees to it. `told` is a field of the briefing's, which outlives both.
    match unsafe { clone_telling(briefing.first_stack, flags, None, told, first::run, argument) } {
        Ok(_) => Ok(()),
        Err(error) => Err(Errno(error.raw_os_error().unwrap_or(libc::EIO))),
    }
}

/// Only processes that share memory *without* a sleeping parent share this score, so the server keeps its own.
fn set_oom_score(briefing: &Briefing<'_>) {
    let Some(score) = &briefing.launch.oom_score else { return };
    // SAFETY: a static string and flags.
    let file = unsafe { libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
    if file >= 0 {
        // SAFETY: the string's own bytes, to the descriptor just opened.
        unsafe { libc::write(file, score.as_ptr().cast(), score.as_bytes().len()) };
        // SAFETY: a descriptor that only this process knows of.
        unsafe { libc::close(file) };
    }
}

/// Being killed when the thread that made us ends, or no longer.
pub(super) fn die_with_parent(on: bool) -> Result<(), Errno> {
    let signal = if on { libc::SIGKILL } else { 0 };
    // SAFETY: sets an attribute of this process only.
    check(i64::from(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::c_long::from(signal), 0, 0, 0) }))?;
    Ok(())
}
