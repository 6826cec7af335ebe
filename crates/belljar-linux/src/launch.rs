//! Starts the first process of a sandbox from inside a large, many-threaded server, without running a helper program.
//!
//! ```text
//! this thread        prepares everything that can be prepared: descriptors, detached mounts, strings, the filter
//!   │ clone(VM, VFORK, FILES): our memory, our descriptors; this thread sleeps
//! usher              joins cgroups and the network, mount and user namespaces (a thread of ours could not: it has siblings)
//!   │ clone(VM, VFORK, PARENT, new pid, mount, uts, ipc and cgroup namespaces)
//! first process      moves the mounts into place, changes root, drops every power, installs the filter
//!   │ execve: has its own memory from here on; the usher wakes and ends, then this thread wakes
//! the sandbox's pid 1, a child of this process
//! ```
//!
//! Both children only make system calls on what was prepared. They note the step they are at in our memory, so an error names
//! it. Both die with us until the last moment before `execve`; a sandbox that got that far is found by its cgroup.

mod first;
mod step;
mod usher;

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

pub use step::Step;

use crate::caps::CapabilitySet;
use crate::cgroup::Membership;
use crate::clone::{BlockedSignals, Stack, clone_on, wait_for_clone};
use crate::rlimit::ProcessLimit;
use crate::seccomp::Program;

/// A detached mount and where it goes inside.
#[derive(Debug)]
pub struct Attach {
    /// The mount.
    pub mount: OwnedFd,
    /// The directory inside the new root that it covers.
    pub at: CString,
}

/// Everything needed to start a sandbox's first process.
#[derive(Debug)]
pub struct Launch {
    /// Its control group.
    pub cgroup: Membership,
    /// Its network namespace.
    pub network: OwnedFd,
    /// The mount namespace that its own begins as a copy of: [`crate::mount::bare_namespace`].
    pub mounts_from: Arc<OwnedFd>,
    /// Its user namespace.
    pub users: Arc<OwnedFd>,
    /// Its root, detached. Holds the directories `/proc` and `/dev`.
    pub root: OwnedFd,
    /// Further mounts, in order.
    pub mounts: Vec<Attach>,
    /// Files of `/proc` that read as nothing; those that are not there are passed over.
    pub masked_files: Vec<CString>,
    /// Directories of `/proc` that are empty; those that are not there are passed over.
    pub masked_directories: Vec<CString>,
    /// Paths of `/proc` that cannot be written; those that are not there are passed over.
    pub read_only: Vec<CString>,
    /// Its host name.
    pub hostname: CString,
    /// Limits of the first process and all it starts.
    pub limits: Vec<ProcessLimit>,
    /// What root inside may do inside.
    pub capabilities: CapabilitySet,
    /// Landlock's fence, where there is one.
    pub fence: Option<OwnedFd>,
    /// Which system calls go through.
    pub filter: Arc<Program>,
    /// How likely the kernel is to choose it when memory runs out. Set with our privileges it is also the least that anybody
    /// inside can have; without them only raised.
    pub oom_score: Option<CString>,
    /// What its standard input is; without it, nothing.
    pub stdin: Option<OwnedFd>,
    /// Where its standard error goes.
    pub stderr: OwnedFd,
    /// The program, inside.
    pub program: CString,
    /// Its arguments, its own name first.
    pub arguments: Vec<CString>,
    /// Its environment.
    pub environment: Vec<CString>,
}

/// A first process that runs.
#[derive(Debug)]
pub struct Launched {
    /// Its number on the host.
    pub pid: u32,
    /// Its descriptor. It is our child: whoever holds this must [`crate::pidfd::reap`] it.
    pub pidfd: OwnedFd,
}

/// A launch that failed; nothing of it is left.
#[derive(Debug, thiserror::Error)]
#[error("{step}{}{detail}", if detail.is_empty() { "" } else { " " })]
pub struct LaunchError {
    /// What was being attempted.
    pub step: Step,
    /// On what, where the step has several objects.
    pub detail: String,
    /// What the kernel said.
    #[source]
    pub source: io::Error,
}

/// What the children write and we read after they are done; they share our memory.
struct Progress {
    step: AtomicU32,
    index: AtomicU32,
    errno: AtomicI32,
    pid: AtomicI32,
}

/// What both children get.
struct Briefing<'a> {
    launch: &'a Launch,
    progress: &'a Progress,
    server: libc::pid_t,
    server_pidfd: libc::c_int,
    first_stack: &'a Stack,
    argv: &'a [*const libc::c_char],
    envp: &'a [*const libc::c_char],
}

const STACK: usize = 128 << 10;

/// Starts it. Blocks for a millisecond or two: not for an async thread.
pub fn launch(launch: &Launch) -> Result<Launched, LaunchError> {
    let prepare = |source: io::Error| LaunchError { step: Step::Prepare, detail: String::new(), source };
    let progress = Progress { step: AtomicU32::new(0), index: AtomicU32::new(0), errno: AtomicI32::new(0), pid: AtomicI32::new(0) };
    let usher_stack = Stack::new(STACK).map_err(prepare)?;
    let first_stack = Stack::new(STACK).map_err(prepare)?;
    let server = std::process::id();
    let server_pidfd = crate::pidfd::open(server).map_err(prepare)?;
    let argv = pointers(&launch.arguments);
    let envp = pointers(&launch.environment);
    let blocked = BlockedSignals::all().map_err(prepare)?;
    let mut briefing = Briefing {
        launch,
        progress: &progress,
        server: server.cast_signed(),
        server_pidfd: server_pidfd.as_raw_fd(),
        first_stack: &first_stack,
        argv: &argv,
        envp: &envp,
    };
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES;
    // SAFETY: the usher and the first process make system calls only; with VFORK this thread sleeps until both are out of our
    // memory, so all that `briefing` borrows outlives them.
    let usher =
        unsafe { clone_on(&usher_stack, flags, launch.cgroup.unified.as_ref().map(AsFd::as_fd), usher::run, (&raw mut briefing).cast()) };
    drop(blocked);
    let usher = usher.map_err(|source| LaunchError { step: Step::CloneUsher, detail: String::new(), source })?;
    let was_killed = wait_for_clone(usher);
    if !matches!(was_killed, Ok(false)) {
        end_first(&progress);
    }
    let outcome = conclude(launch, &progress);
    was_killed.map_err(prepare).and(outcome)
}

/// An usher that was killed no longer sleeps until the first process is out of our memory: before we touch that again, it must have ended.
fn end_first(progress: &Progress) {
    let pid = progress.pid.load(Ordering::Acquire);
    if pid > 0 {
        // SAFETY: our own child, which nobody else waits for, so its number is still its own.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        // Whether it is waited for here or was never there, it is not in our memory afterwards.
        let _ = wait_for_clone(pid);
        progress.pid.store(0, Ordering::Release);
    }
}

fn conclude(launch: &Launch, progress: &Progress) -> Result<Launched, LaunchError> {
    let pid = progress.pid.load(Ordering::Acquire);
    let step = Step::from_number(progress.step.load(Ordering::Acquire));
    let errno = progress.errno.load(Ordering::Acquire);
    let failure = |source| LaunchError { step, detail: step.object(launch, progress.index.load(Ordering::Acquire)), source };
    if errno == 0 && step == Step::Execute && pid > 0 {
        return match crate::pidfd::open(pid.cast_unsigned()) {
            Ok(pidfd) => Ok(Launched { pid: pid.cast_unsigned(), pidfd }),
            Err(source) => Err(failure(source)),
        };
    }
    if pid > 0 {
        // It has ended or is about to; our child stays a zombie until we look.
        wait_for_clone(pid).map_err(failure)?;
    }
    Err(failure(if errno == 0 { io::Error::other("killed from outside") } else { io::Error::from_raw_os_error(errno) }))
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|string| string.as_ptr()).chain(std::iter::once(std::ptr::null())).collect()
}

impl Progress {
    fn at(&self, step: Step) {
        self.index.store(0, Ordering::Release);
        self.step.store(step as u32, Ordering::Release);
    }

    fn at_object(&self, step: Step, index: usize) {
        self.index.store(u32::try_from(index).unwrap_or(u32::MAX), Ordering::Release);
        self.step.store(step as u32, Ordering::Release);
    }
}
