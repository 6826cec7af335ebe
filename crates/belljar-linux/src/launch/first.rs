//! The first process of a sandbox, from its birth to its `execve`.
//!
//! Runs in the server's memory like the usher: system calls only, no allocation, no lock, no panic. The order matters: mounts
//! need the powers that are dropped after them, and the filter comes last because it forbids most of what stands before it.

use std::ffi::{CStr, c_int, c_void};
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering;

use super::usher::{Errno, check, die_with_parent, last_errno};
use super::{Briefing, Launch, Progress, Step};

const MOVE_MOUNT_F_EMPTY_PATH: c_int = 4;
/// A directory of the bare mount namespace.
const STEPPING_STONE: &CStr = c"/dev";
const TERMINAL_OPTIONS: &CStr = c"newinstance,ptmxmode=0666,mode=0620,gid=5,max=256";
const EMPTY_DIRECTORY_OPTIONS: &CStr = c"size=4k,nr_inodes=1,mode=555";

pub(super) extern "C" fn run(argument: *mut c_void) -> c_int {
    // SAFETY: `launch` passed a pointer to a `Briefing` and sleeps until this process has ended or executed.
    let briefing = unsafe { &*argument.cast::<Briefing<'_>>() };
    let Err(Errno(errno)) = first(briefing) else { return 0 };
    briefing.progress.errno.store(errno, Ordering::Release);
    1
}

fn first(briefing: &Briefing<'_>) -> Result<(), Errno> {
    let Briefing { launch, progress, .. } = briefing;
    become_root(progress)?;
    progress.at(Step::DieWithServer);
    die_with_parent(true)?;
    server_lives(briefing.server_pidfd)?;
    enter_root(launch, progress)?;
    arrange_mounts(launch, progress)?;
    progress.at(Step::SetHostname);
    let hostname = launch.hostname.as_bytes();
    // SAFETY: the name's own bytes and their number.
    check(i64::from(unsafe { libc::sethostname(hostname.as_ptr().cast(), hostname.len()) }))?;
    for (index, limit) in launch.limits.iter().enumerate() {
        progress.at_object(Step::SetLimit, index);
        // SAFETY: a valid limit, for this process.
        check(i64::from(unsafe { libc::setrlimit64(limit.resource, &raw const limit.value) }))?;
    }
    set_streams(launch, progress)?;
    drop_powers(launch, progress)?;
    reset_signals(briefing)?;
    install_filter(launch, progress)?;
    progress.at(Step::Execute);
    die_with_parent(false)?;
    // SAFETY: the program and both arrays are valid, terminated strings and pointers prepared by `launch`.
    unsafe { libc::execve(launch.program.as_ptr(), briefing.argv.as_ptr(), briefing.envp.as_ptr()) };
    Err(last_errno())
}

fn become_root(progress: &Progress) -> Result<(), Errno> {
    progress.at(Step::BecomeRoot);
    // The raw calls: the C library's wrappers would change all threads of the server, which it believes to be ours.
    // SAFETY: numbers and a null pointer with length 0 only.
    check(unsafe { libc::syscall(libc::SYS_setgroups, 0usize, null::<libc::gid_t>()) })?;
    // SAFETY: as above.
    check(unsafe { libc::syscall(libc::SYS_setresgid, 0, 0, 0) })?;
    // SAFETY: as above.
    check(unsafe { libc::syscall(libc::SYS_setresuid, 0, 0, 0) })?;
    // SAFETY: takes nothing.
    check(unsafe { libc::syscall(libc::SYS_setsid) })?;
    // SAFETY: takes a number and cannot fail.
    unsafe { libc::umask(0o022) };
    Ok(())
}

/// The server may have died before this process asked to die with it.
fn server_lives(server_pidfd: RawFd) -> Result<(), Errno> {
    let mut polled = libc::pollfd { fd: server_pidfd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid entry, no waiting.
    match check(i64::from(unsafe { libc::poll(&raw mut polled, 1, 0) }))? {
        0 => Ok(()),
        _ => Err(Errno(libc::ESRCH)),
    }
}

fn enter_root(launch: &Launch, progress: &Progress) -> Result<(), Errno> {
    progress.at(Step::SeparateMounts);
    mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE, None)?;
    progress.at(Step::AttachRoot);
    move_mount(launch.root.as_raw_fd(), STEPPING_STONE)?;
    // SAFETY: an open descriptor.
    check(i64::from(unsafe { libc::fchdir(launch.root.as_raw_fd()) }))?;
    progress.at(Step::ChangeRoot);
    // The host's root ends up on top of the new one, where it is taken off at the end: `/proc` can only be mounted while the
    // host's own is still in sight.
    // SAFETY: static strings.
    check(unsafe { libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()) })?;
    Ok(())
}

fn arrange_mounts(launch: &Launch, progress: &Progress) -> Result<(), Errno> {
    let quiet = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    for (index, attach) in launch.mounts.iter().enumerate() {
        progress.at_object(Step::AttachMount, index);
        move_mount(attach.mount.as_raw_fd(), &attach.at)?;
    }
    progress.at(Step::MountProcesses);
    mount(Some(c"proc"), c"/proc", Some(c"proc"), quiet, None)?;
    progress.at(Step::MountTerminals);
    mount(Some(c"devpts"), c"/dev/pts", Some(c"devpts"), libc::MS_NOSUID | libc::MS_NOEXEC, Some(TERMINAL_OPTIONS))?;
    for (index, path) in launch.masked_files.iter().enumerate() {
        progress.at_object(Step::MaskFile, index);
        unless_absent(mount(Some(c"/dev/null"), path, None, libc::MS_BIND, None))?;
    }
    for (index, path) in launch.masked_directories.iter().enumerate() {
        progress.at_object(Step::MaskDirectory, index);
        unless_absent(mount(Some(c"tmpfs"), path, Some(c"tmpfs"), quiet | libc::MS_RDONLY, Some(EMPTY_DIRECTORY_OPTIONS)))?;
    }
    for (index, path) in launch.read_only.iter().enumerate() {
        progress.at_object(Step::MakeReadOnly, index);
        if unless_absent(mount(Some(path), path, None, libc::MS_BIND | libc::MS_REC, None))? {
            mount(None, path, None, quiet | libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY, None)?;
        }
    }
    progress.at(Step::DropOldRoot);
    // SAFETY: a static string and a flag.
    check(i64::from(unsafe { libc::umount2(c".".as_ptr(), libc::MNT_DETACH) }))?;
    // SAFETY: a static string.
    check(i64::from(unsafe { libc::chdir(c"/".as_ptr()) }))?;
    Ok(())
}

fn set_streams(launch: &Launch, progress: &Progress) -> Result<(), Errno> {
    progress.at(Step::SetStreams);
    // SAFETY: a static string and flags.
    let null_device = check(i64::from(unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) }))?;
    let null_device = c_int::try_from(null_device).map_err(|_| Errno(libc::EBADF))?;
    let stdin = launch.stdin.as_ref().map_or(null_device, AsRawFd::as_raw_fd);
    for (source, target) in [(stdin, 0), (null_device, 1), (launch.stderr.as_raw_fd(), 2)] {
        // SAFETY: open descriptors of this process's own table.
        check(i64::from(unsafe { libc::dup2(source, target) }))?;
    }
    Ok(())
}

fn drop_powers(launch: &Launch, progress: &Progress) -> Result<(), Errno> {
    progress.at(Step::DropCapabilities);
    for number in (0..=crate::caps::LAST).filter(|number| !launch.capabilities.holds(*number)) {
        // SAFETY: a number; concerns this process only.
        match check(i64::from(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(number), 0, 0, 0) })) {
            // A capability that this kernel does not have.
            Ok(_) | Err(Errno(libc::EINVAL)) => {}
            Err(error) => return Err(error),
        }
    }
    let bits = launch.capabilities.bits();
    let half = |shift: u32| u32::try_from(bits >> shift & u64::from(u32::MAX)).unwrap_or(0);
    let header = [0x2008_0522u32, 0];
    let data = [half(0), half(0), 0, half(32), half(32), 0];
    // SAFETY: laid out as the kernel's version-3 header and its two data blocks (effective, permitted, inheritable).
    check(unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), data.as_ptr()) })?;
    progress.at(Step::ForbidNewPrivileges);
    // SAFETY: numbers; concerns this process only.
    check(i64::from(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }))?;
    if let Some(fence) = &launch.fence {
        progress.at(Step::Fence);
        // SAFETY: an open descriptor and no flags.
        check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, fence.as_raw_fd(), 0) })?;
    }
    progress.at(Step::CloseDescriptors);
    // SAFETY: this process has its own copy of the descriptor table, and uses none from 3 on any more.
    check(unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0u32) })?;
    Ok(())
}

/// Our handlers must be gone before signals are let in, or they would run here, in the server's memory.
fn reset_signals(briefing: &Briefing<'_>) -> Result<(), Errno> {
    briefing.progress.at(Step::ResetSignals);
    /// As the kernel lays it out, which is not as the C library does.
    #[repr(C)]
    struct KernelAction {
        handler: usize,
        flags: u64,
        restorer: usize,
        mask: u64,
    }
    let default = KernelAction { handler: libc::SIG_DFL, flags: 0, restorer: 0, mask: 0 };
    for signal in (1..=64).filter(|signal| !matches!(*signal, libc::SIGKILL | libc::SIGSTOP)) {
        // SAFETY: `default` is laid out as the kernel expects; signal actions are not shared with the server.
        check(unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, &raw const default, null_mut::<c_void>(), 8usize) })?;
    }
    let none = 0u64;
    // SAFETY: a mask of the kernel's 8 bytes.
    check(unsafe { libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const none, null_mut::<c_void>(), 8usize) })?;
    Ok(())
}

fn install_filter(launch: &Launch, progress: &Progress) -> Result<(), Errno> {
    progress.at(Step::Filter);
    let program = launch.filter.as_kernel_program();
    // SAFETY: the program points to instructions that `launch` holds.
    check(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) })?;
    Ok(())
}

fn move_mount(source: RawFd, target: &CStr) -> Result<(), Errno> {
    // SAFETY: an open descriptor and terminated strings.
    check(unsafe { libc::syscall(libc::SYS_move_mount, source, c"".as_ptr(), libc::AT_FDCWD, target.as_ptr(), MOVE_MOUNT_F_EMPTY_PATH) })?;
    Ok(())
}

fn mount(source: Option<&CStr>, target: &CStr, kind: Option<&CStr>, flags: libc::c_ulong, options: Option<&CStr>) -> Result<(), Errno> {
    let pointer = |text: Option<&CStr>| text.map_or(null(), CStr::as_ptr);
    // SAFETY: null or terminated strings throughout.
    check(i64::from(unsafe { libc::mount(pointer(source), target.as_ptr(), pointer(kind), flags, pointer(options).cast()) }))?;
    Ok(())
}

/// Says whether it was there.
fn unless_absent(result: Result<(), Errno>) -> Result<bool, Errno> {
    match result {
        Ok(()) => Ok(true),
        Err(Errno(libc::ENOENT)) => Ok(false),
        Err(error) => Err(error),
    }
}
