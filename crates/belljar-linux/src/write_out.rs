//! Begins to bring a file's changes to the disk without waiting for it, so that there is something else to do in the meantime.

use std::fs::File;
use std::os::fd::AsRawFd;

/// Sends out what was written from `offset` for `length` bytes. It promises nothing: `sync_data` does, and then has less to wait for.
pub fn begin(file: &File, offset: u64, length: u64) {
    let (Ok(offset), Ok(length)) = (libc::off64_t::try_from(offset), libc::off64_t::try_from(length)) else { return };
    // SAFETY: numbers are passed, and the descriptor is open as long as the file is borrowed. A kernel that cannot do it changes nothing.
    unsafe { libc::sync_file_range(file.as_raw_fd(), offset, length, libc::SYNC_FILE_RANGE_WRITE) };
}
