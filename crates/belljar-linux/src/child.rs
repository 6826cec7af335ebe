//! Starting a process as another user in a session of its own, and saying exactly which step failed.
//!
//! `std::process::Command` cannot say whether it was the directory, the user or the program that was wrong, and runs closures between fork and
//! exec. Here the child only makes system calls on memory that was prepared beforehand, which is all that is allowed in the child of a process
//! with threads, and reports the failed step through a pipe. It shares that memory until it executes its program: copying an address space
//! for it would cost several milliseconds in gVisor.

use std::ffi::CString;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use crate::cgroup::Membership;
use crate::clone::{BlockedSignals, Stack, clone_on};

/// What the child's few frames need, many times over.
const STACK: usize = 64 << 10;

/// As whom a child runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildUser {
    /// User number.
    pub uid: u32,
    /// Group number.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
}

/// Everything a child needs, prepared before the fork.
pub struct ChildPlan<'a> {
    /// Files to try as the program, in order.
    pub programs: Vec<CString>,
    /// Arguments, the first one included.
    pub argv: Vec<CString>,
    /// Environment, `NAME=value`.
    pub env: Vec<CString>,
    /// Where it starts, looked up with the user's rights.
    pub cwd: CString,
    /// As whom; the caller's own identity when unset.
    pub user: Option<ChildUser>,
    /// Standard input, output and error.
    pub stdio: [BorrowedFd<'a>; 3],
    /// Make standard input its controlling terminal.
    pub controlling_terminal: bool,
    /// Take back the protection from the out-of-memory killer that its maker may have.
    pub reset_oom_score: bool,
}

/// The step that failed, in the order in which they are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ChildStep {
    /// Making the process at all, in its control group.
    Fork = 0,
    /// Its own session and terminal.
    Session = 1,
    /// Standard input, output and error.
    Stdio = 2,
    /// Becoming the user.
    User = 3,
    /// Entering the directory.
    Directory = 4,
    /// Running the program.
    Program = 5,
}

/// Why no process was started.
#[derive(Debug, thiserror::Error)]
#[error("start a process: {step:?}")]
pub struct ChildError {
    /// The step that failed.
    pub step: ChildStep,
    /// What the kernel said.
    #[source]
    pub source: std::io::Error,
}

/// What is handed to the child: raw pointers into the plan, which outlives the fork.
struct Prepared<'a> {
    plan: &'a ChildPlan<'a>,
    groups: &'a [OwnedFd],
    argv: Vec<*const libc::c_char>,
    env: Vec<*const libc::c_char>,
    report: RawFd,
}

/// Starts a process. Returns its number once the program runs. The caller reaps it.
pub fn spawn(plan: &ChildPlan<'_>) -> Result<u32, ChildError> {
    start(plan, &Membership::default())
}

/// The same in a control group, from its first instruction on: nothing it does or starts escapes the group's limits.
pub fn spawn_in(cgroup: &Membership, plan: &ChildPlan<'_>) -> Result<u32, ChildError> {
    start(plan, cgroup)
}

fn start(plan: &ChildPlan<'_>, cgroup: &Membership) -> Result<u32, ChildError> {
    let fork_failed = |source| ChildError { step: ChildStep::Fork, source };
    if plan.stdio.iter().any(|fd| fd.as_raw_fd() < 3) {
        return Err(ChildError { step: ChildStep::Stdio, source: std::io::ErrorKind::InvalidInput.into() });
    }
    let (mut reader, writer) = report_pipe().map_err(fork_failed)?;
    let pointers = |texts: &[CString]| texts.iter().map(|t| t.as_ptr()).chain([ptr::null()]).collect();
    let prepared =
        Prepared { plan, groups: &cgroup.tasks, argv: pointers(&plan.argv), env: pointers(&plan.env), report: writer.as_raw_fd() };

    let stack = Stack::new(STACK).map_err(fork_failed)?;
    let blocked = BlockedSignals::all().map_err(fork_failed)?;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let argument = (&raw const prepared).cast_mut().cast();
    // The newer call is not for everywhere: sandboxes refuse it.
    let forked = match &cgroup.unified {
        // SAFETY: the child runs only `child_main`, which makes system calls on memory prepared above, on a stack of its own, and never returns;
        // this thread sleeps until the child has executed a program or ended, so all of it outlives the child's use.
        Some(unified) => unsafe { clone_on(&stack, flags, Some(unified.as_fd()), child_main, argument) },
        // SAFETY: as above.
        None => match unsafe { libc::clone(child_main, stack.top(), flags, argument) } {
            pid if pid < 0 => Err(std::io::Error::last_os_error()),
            pid => Ok(pid),
        },
    };
    drop(blocked);
    drop(writer);
    let pid = forked.map_err(fork_failed)?.unsigned_abs();

    let mut report = Vec::new();
    reader.read_to_end(&mut report).map_err(fork_failed)?;
    match report.first_chunk::<5>() {
        None => Ok(pid),
        Some(&[step, ref errno @ ..]) => {
            let step = match step {
                1 => ChildStep::Session,
                2 => ChildStep::Stdio,
                3 => ChildStep::User,
                4 => ChildStep::Directory,
                5 => ChildStep::Program,
                _ => ChildStep::Fork,
            };
            Err(ChildError { step, source: std::io::Error::from_raw_os_error(i32::from_ne_bytes(*errno)) })
        }
    }
}

/// Marks inherited descriptors so that no child gets them. Numbers that are not open are skipped.
pub fn close_on_exec(descriptors: impl Iterator<Item = RawFd>) {
    for fd in descriptors {
        // SAFETY: takes integers only; a number that is not open gives an error and changes nothing.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

fn report_pipe() -> std::io::Result<(std::fs::File, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: `fds` has room for the two descriptors the kernel writes.
    if unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) } < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the call above made this descriptor and nobody else owns it.
    let reader = unsafe { OwnedFd::from_raw_fd(fds[0]) };
    // SAFETY: as above.
    let writer = unsafe { OwnedFd::from_raw_fd(fds[1]) };
    Ok((reader.into(), writer))
}

/// The child's life between clone and exec, in its parent's memory. Allocates nothing, takes no lock, never returns.
extern "C" fn child_main(argument: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `spawn` passed a pointer to a `Prepared` and sleeps until this process is done with it.
    let prepared = unsafe { &*argument.cast::<Prepared<'_>>() };
    let Err((step, errno)) = steps(prepared);
    let [e0, e1, e2, e3] = errno.to_ne_bytes();
    let report = [step as u8, e0, e1, e2, e3];
    // SAFETY: `report` is 5 readable bytes.
    unsafe { libc::write(prepared.report, report.as_ptr().cast(), report.len()) };
    // SAFETY: ends the process without running the parent's exit handlers.
    unsafe { libc::_exit(127) }
}

fn steps(prepared: &Prepared<'_>) -> Result<std::convert::Infallible, (ChildStep, i32)> {
    let plan = prepared.plan;
    for group in prepared.groups {
        // "0" is the thread that writes it.
        // SAFETY: one byte of a static string, to an open descriptor.
        let written = unsafe { libc::write(group.as_raw_fd(), c"0".as_ptr().cast(), 1) };
        check(if written == 1 { 0 } else { -1 }, ChildStep::Fork)?;
    }
    // SAFETY: takes no memory.
    check(unsafe { libc::setsid() }, ChildStep::Session)?;
    if plan.reset_oom_score {
        reset_oom_score();
    }
    for (target, source) in (0..).zip(plan.stdio) {
        // SAFETY: both are descriptor numbers; the source is open and above 2, so the copy is not closed by exec.
        check(unsafe { libc::dup2(source.as_raw_fd(), target) }, ChildStep::Stdio)?;
    }
    if plan.controlling_terminal {
        // SAFETY: this request takes an integer, not memory.
        check(unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) }, ChildStep::Session)?;
    }
    default_signals();
    if let Some(user) = &plan.user {
        become_user(user)?;
    }
    // SAFETY: takes no memory.
    unsafe { libc::umask(0o022) };
    // SAFETY: `cwd` ends with NUL and lives until exec.
    check(unsafe { libc::chdir(plan.cwd.as_ptr()) }, ChildStep::Directory)?;
    Err((ChildStep::Program, run_first(prepared)))
}

/// The calling thread's last error; allocates nothing.
fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn check(result: libc::c_int, step: ChildStep) -> Result<(), (ChildStep, i32)> {
    if result < 0 { Err((step, errno())) } else { Ok(()) }
}

fn reset_oom_score() {
    // SAFETY: the path is a literal that ends with NUL.
    let fd = unsafe { libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
    if fd >= 0 {
        // SAFETY: one readable byte; a refusal leaves the child as protected as its parent, which is harmless.
        unsafe { libc::write(fd, c"0".as_ptr().cast(), 1) };
        // SAFETY: opened above.
        unsafe { libc::close(fd) };
    }
}

fn default_signals() {
    // The kernel's own form of `struct sigaction`, all zero: default disposition. The C library hides two of the signals.
    let default = [0u64; 4];
    for signal in 1..=64 {
        // SAFETY: `default` is as long as the kernel's structure with a set of 8 bytes; the two signals that refuse have no other disposition.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), ptr::null_mut::<u64>(), 8usize) };
    }
    // SAFETY: an all-zero set is the empty set on Linux.
    let none = unsafe { std::mem::zeroed::<libc::sigset_t>() };
    // SAFETY: `none` is a valid set; the mask changed is this process's own.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut()) };
}

/// Plain system calls: the C library's wrappers would try to tell threads that do not exist in the child.
fn become_user(user: &ChildUser) -> Result<(), (ChildStep, i32)> {
    let call = |result: libc::c_long| if result < 0 { Err((ChildStep::User, errno())) } else { Ok(()) };
    // SAFETY: pointer and length are of the same live slice.
    call(unsafe { libc::syscall(libc::SYS_setgroups, user.groups.len(), user.groups.as_ptr()) })?;
    // SAFETY: takes no memory.
    call(unsafe { libc::syscall(libc::SYS_setresgid, user.gid, user.gid, user.gid) })?;
    // SAFETY: takes no memory.
    call(unsafe { libc::syscall(libc::SYS_setresuid, user.uid, user.uid, user.uid) })
}

/// Tries the programs in order. A file that may not be run is remembered but the next is tried, as shells do. Returns what was wrong.
fn run_first(prepared: &Prepared<'_>) -> i32 {
    let mut worst = libc::ENOENT;
    for program in &prepared.plan.programs {
        // SAFETY: all strings end with NUL, both arrays end with a null pointer, and all live in the plan.
        unsafe { libc::execve(program.as_ptr(), prepared.argv.as_ptr(), prepared.env.as_ptr()) };
        match errno() {
            libc::ENOENT | libc::ENOTDIR => {}
            libc::EACCES => worst = libc::EACCES,
            other => return other,
        }
    }
    worst
}

#[cfg(test)]
#[path = "child/tests.rs"]
mod tests;
