//! Children that share this process's memory for as long as they are being prepared.
//!
//! A server with a large heap must not copy its page tables, and make every other thread fault its pages back in, each time it
//! starts a sandbox. So the child is cloned with `CLONE_VM`: it runs on a stack of its own, in our memory, on data prepared
//! beforehand, and makes system calls only. Whoever calls [`clone_on`] promises exactly that.

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// A stack for a child, with a page below it that nothing can be written to.
pub(crate) struct Stack {
    base: NonNull<c_void>,
    length: usize,
}

const GUARD: usize = 4096;

impl Stack {
    pub(crate) fn new(size: usize) -> io::Result<Self> {
        let length = size + GUARD;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK | libc::MAP_NORESERVE;
        // SAFETY: asks for a fresh mapping anywhere; no existing memory is touched.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        let base = NonNull::new(base).filter(|base| base.as_ptr() != libc::MAP_FAILED).ok_or_else(io::Error::last_os_error)?;
        let stack = Self { base, length };
        // SAFETY: the first page of the mapping that was just made, which is page-aligned and longer than a page.
        if unsafe { libc::mprotect(stack.base.as_ptr(), GUARD, libc::PROT_NONE) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(stack)
    }

    /// Where it begins, for the older call, which takes its end and not its length.
    pub(crate) fn top(&self) -> *mut c_void {
        // SAFETY: one past the end of the mapping, which is page-aligned as the ABI's 16 bytes need.
        unsafe { self.base.as_ptr().byte_add(self.length) }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours alone; whoever ran on it has ended or has another memory by now.
        unsafe { libc::munmap(self.base.as_ptr(), self.length) };
    }
}

/// All signals of this thread held back until dropped: a child in our memory must not run our handlers.
pub(crate) struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    pub(crate) fn all() -> io::Result<Self> {
        // SAFETY: all-zero bytes are a valid `sigset_t`.
        let mut every: libc::sigset_t = unsafe { std::mem::zeroed() };
        let mut before = every;
        // SAFETY: `every` is a valid set to fill.
        unsafe { libc::sigfillset(&raw mut every) };
        // SAFETY: both sets are valid, and the mask changed is this thread's own.
        match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const every, &raw mut before) } {
            0 => Ok(Self(before)),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: puts back this thread's mask as it was found.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut()) };
    }
}

/// Past the bits of the older call, and so of the type of its constants.
pub(crate) const CLONE_INTO_CGROUP: u64 = 1 << 33;

/// The bits in which the older call was told the signal.
const EXIT_SIGNAL: c_int = 0xff;

/// What `clone3` takes, as the kernel lays it out.
#[repr(C)]
#[derive(Default)]
pub(crate) struct CloneArguments {
    pub(crate) flags: u64,
    pub(crate) pidfd: u64,
    pub(crate) child_tid: u64,
    pub(crate) parent_tid: u64,
    pub(crate) exit_signal: u64,
    pub(crate) stack: u64,
    pub(crate) stack_size: u64,
    pub(crate) tls: u64,
    pub(crate) set_tid: u64,
    pub(crate) set_tid_size: u64,
    pub(crate) cgroup: u64,
}

/// Starts `child` on `stack`, in the v2 cgroup whose directory is given, or in ours. Unless `flags` name a signal, the child sends none when
/// it ends, so nobody who waits for other children sees it.
///
/// Being born in a cgroup is not only atomic: moving a process there afterwards makes the kernel wait until every processor has
/// passed a quiet moment, some ten milliseconds on a busy machine.
///
/// # Safety
/// With `CLONE_VM`, `child` must only make system calls on memory that stays valid until it has ended or executed a program: no
/// allocation, no lock, no panic. `argument` and `stack` must live as long.
pub(crate) unsafe fn clone_on(
    stack: &Stack,
    flags: c_int,
    cgroup: Option<BorrowedFd<'_>>,
    child: extern "C" fn(*mut c_void) -> c_int,
    argument: *mut c_void,
) -> io::Result<libc::pid_t> {
    // SAFETY: the same as is asked of our caller; the number is told to nobody else.
    unsafe { clone_telling(stack, flags, cgroup, std::ptr::null_mut(), child, argument) }
}

/// [`clone_on`] that also writes the child's number to `told`, if that is not null, before the child runs: the caller may be killed before it could.
///
/// # Safety
/// As for [`clone_on`]; `told` must be null or a place to write to.
pub(crate) unsafe fn clone_telling(
    stack: &Stack,
    flags: c_int,
    cgroup: Option<BorrowedFd<'_>>,
    told: *mut libc::pid_t,
    child: extern "C" fn(*mut c_void) -> c_int,
    argument: *mut c_void,
) -> io::Result<libc::pid_t> {
    let flags = if told.is_null() { flags } else { flags | libc::CLONE_PARENT_SETTID };
    let into_cgroup = if cgroup.is_some() { CLONE_INTO_CGROUP } else { 0 };
    let arguments = CloneArguments {
        flags: u64::from((flags & !EXIT_SIGNAL).cast_unsigned()) | into_cgroup,
        exit_signal: u64::from((flags & EXIT_SIGNAL).cast_unsigned()),
        stack: stack.base.as_ptr() as u64,
        stack_size: stack.length as u64,
        parent_tid: told as u64,
        cgroup: cgroup.map_or(0, |cgroup| u64::from(cgroup.as_raw_fd().cast_unsigned())),
        ..CloneArguments::default()
    };
    let answer: i64;
    // SAFETY: the caller vouches for `child` and `argument`. The parent goes on after the block with only the registers changed
    // that are named; the child starts at the top of its own, page-aligned stack, has `child` and `argument` in registers that the
    // system call keeps, calls the one with the other and ends without ever returning here. These registers are named because a
    // compiler that may choose can choose rbp, which is zeroed first so that a debugger sees where the child's stack ends.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "mov edi, eax",
            "mov eax, {exit}",
            "syscall",
            "ud2",
            "2:",
            exit = const libc::SYS_exit,
            inout("rax") libc::SYS_clone3 => answer,
            in("rdi") &raw const arguments,
            in("rsi") size_of::<CloneArguments>(),
            in("r12") argument,
            in("r13") child,
            out("rcx") _,
            out("r11") _,
        );
    }
    match libc::pid_t::try_from(answer) {
        Ok(pid) if pid > 0 => Ok(pid),
        Ok(error) => Err(io::Error::from_raw_os_error(error.wrapping_neg())),
        Err(_) => Err(io::Error::from(io::ErrorKind::Other)),
    }
}

/// Waits for a child made by [`clone_on`] and forgets it; says whether it was killed.
pub(crate) fn wait_for_clone(pid: libc::pid_t) -> io::Result<bool> {
    loop {
        let mut status = 0;
        // SAFETY: `status` is a valid place to write to.
        if unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) } >= 0 {
            return Ok(libc::WIFSIGNALED(status));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
