//! User namespaces made for their id map alone, so that a mount can be shown with shifted owners before any sandbox exists.
//!
//! A namespace is made by a child that shares our memory and does nothing but wait; we write its maps from outside, take a
//! descriptor of the namespace and let the child go. The namespace lives as long as the descriptor. If we die half-way, the
//! child, which holds no descriptor but its end of a pipe, sees that pipe close and ends by itself.

use std::ffi::c_void;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::pipe::{PipeFlags, pipe_with};

use crate::clone::{BlockedSignals, Stack, clone_on, wait_for_clone};

/// A user namespace in which ids `0..count` are the host's `base..base + count`, for users and groups alike.
pub fn user_namespace(base: u32, count: u32) -> io::Result<OwnedFd> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    let mut waiter = Waiter { reader: reader.as_raw_fd() };
    let stack = Stack::new(16 << 10)?;
    let blocked = BlockedSignals::all()?;
    // SAFETY: `wait_for_release` makes only raw system calls on its own stack, and `waiter` and `stack` outlive the child because
    // `wait_for_clone` below is reached on every path.
    let pid = unsafe { clone_on(&stack, libc::CLONE_NEWUSER | libc::CLONE_VM, None, wait_for_release, (&raw mut waiter).cast()) };
    drop(blocked);
    let pid = pid?;
    let namespace = map_ids(pid, base, count);
    drop(writer);
    wait_for_clone(pid)?;
    namespace
}

fn map_ids(pid: libc::pid_t, base: u32, count: u32) -> io::Result<OwnedFd> {
    let map = format!("0 {base} {count}\n");
    // Project ids as well: a map that is not written can be written from inside.
    for kind in ["uid_map", "gid_map", "projid_map"] {
        fs::write(format!("/proc/{pid}/{kind}"), &map)?;
    }
    Ok(fs::File::open(format!("/proc/{pid}/ns/user"))?.into())
}

struct Waiter {
    reader: RawFd,
}

/// Runs while the parent runs too, in the same memory: `rustix` is used because it does not write the shared `errno`.
extern "C" fn wait_for_release(argument: *mut c_void) -> libc::c_int {
    // SAFETY: the parent passed a pointer to a `Waiter` that lives until this process has ended.
    let waiter = unsafe { &*argument.cast::<Waiter>() };
    // Not only our own writing end: two of these made at once hold each other's, and would wait for each other when we die.
    let reader = waiter.reader.cast_unsigned();
    for (first, last) in [(0, reader.saturating_sub(1)), (reader.saturating_add(1), u32::MAX)] {
        // SAFETY: this child has its own copy of the descriptor table and uses nothing of it but the reading end. Kernels that can map the ids of
        // mounts have this call, so it does not fail and the shared `errno` is not written.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0u32) };
    }
    // SAFETY: the reading end is open in this child's own table until it ends.
    let reader = unsafe { rustix::fd::BorrowedFd::borrow_raw(waiter.reader) };
    let mut byte = [0u8; 1];
    while matches!(rustix::io::read(reader, &mut byte), Err(rustix::io::Errno::INTR)) {}
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_namespace_outlives_its_maker_and_holds_the_map() {
        let namespace = user_namespace(1_000_000, 65_536).unwrap();
        let kind = fs::read_link(format!("/proc/self/fd/{}", namespace.as_raw_fd())).unwrap();
        assert!(kind.to_string_lossy().starts_with("user:["), "{kind:?}");
        assert_ne!(fs::read_link("/proc/self/ns/user").unwrap(), kind);
    }

    #[test]
    fn a_map_the_kernel_refuses_is_an_error() {
        assert!(user_namespace(u32::MAX - 10, 65_536).is_err());
    }
}
