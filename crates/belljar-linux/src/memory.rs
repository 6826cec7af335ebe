//! Memory that a program freed and keeps for the next time.
//!
//! The C library gives large pieces back to the kernel, and takes them anew with a fault for every page. Programs that pass files on do little else than
//! take and free large pieces: measured, 640 faults for every 4 MiB that were written through the server.

use std::ffi::c_int;

/// Larger pieces than this are given back at once all the same.
const LARGEST: c_int = 1 << 20;

/// Keeps up to `bytes` of what is freed, in each of at most `arenas` parts of memory that threads share. To be called before there are threads.
pub fn keep_freed(bytes: c_int, arenas: c_int) {
    for (setting, value) in [(libc::M_ARENA_MAX, arenas), (libc::M_MMAP_THRESHOLD, LARGEST), (libc::M_TRIM_THRESHOLD, bytes)] {
        // SAFETY: numbers are passed, and nothing but the allocator's settings changes. One that it does not take leaves it as it was.
        unsafe { libc::mallopt(setting, value) };
    }
}
