//! What a small program of one thread needs to shut itself in: copies of itself in new namespaces, whole trees of mounts, and the walls
//! that a process puts around itself and never takes down again.
//!
//! [`crate::launch`] does the same from within a large server, whose memory must not be copied and in which nothing may be allocated
//! meanwhile. A program with one thread has no such worries: the copy runs ordinary code.

mod copy;
mod fence;
mod signals;
mod trees;

use std::io;

pub use copy::{Namespaces, copy_of_this_process};
pub use fence::{Fence, Reopen};
pub use signals::SignalSource;
pub use trees::{attach, copy_whole_tree, map_owners_of_tree, restrict_tree};

use crate::caps;
use crate::seccomp::Program;

/// Takes every capability from this process and all it will start, and forbids it to gain any from a program's file.
pub fn drop_all_powers() -> io::Result<()> {
    for number in 0..=caps::LAST {
        // SAFETY: a number; concerns this process only.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(number), 0, 0, 0) } != 0 {
            let error = io::Error::last_os_error();
            // A capability that this kernel does not have.
            if error.raw_os_error() != Some(libc::EINVAL) {
                return Err(error);
            }
        }
    }
    // SAFETY: numbers; concerns this process only.
    check(i64::from(unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) }))?;
    let (header, nothing) = ([0x2008_0522u32, 0], [0u32; 6]);
    // SAFETY: laid out as the kernel's version-3 header and its two data blocks.
    check(unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), nothing.as_ptr()) })?;
    // SAFETY: numbers; concerns this process only.
    check(i64::from(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }))
}

/// Lets only the calls through that the filter allows, for this process and all it will start.
pub fn filter_calls(filter: &Program) -> io::Result<()> {
    let program = filter.as_kernel_program();
    // SAFETY: the program points to instructions that `filter` holds through the call.
    check(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) })
}

/// Marks every descriptor from 3 on, whoever opened it, so that no program started by us gets it.
pub fn close_descriptors_on_exec() -> io::Result<()> {
    // SAFETY: sets a flag on descriptors; none is closed, so whoever holds one still does.
    check(unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) })
}

/// Becomes root of its own user namespace, with no further groups.
pub fn become_root_inside() -> io::Result<()> {
    // SAFETY: a length of nothing and a null pointer.
    check(unsafe { libc::syscall(libc::SYS_setgroups, 0usize, std::ptr::null::<libc::gid_t>()) })?;
    // SAFETY: numbers only; a process of one thread has no other whose identity would differ.
    check(unsafe { libc::syscall(libc::SYS_setresgid, 0, 0, 0) })?;
    // SAFETY: as above.
    check(unsafe { libc::syscall(libc::SYS_setresuid, 0, 0, 0) })
}

fn check(answer: i64) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
