//! Numbers between the words, which are unsigned, and the databases, which know only signed ones. What is too big to be stored is as good as
//! endless, and comes back as the biggest there is.

use belljar_types::{Quota, Timestamp};

/// As stored.
pub(crate) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// As it was before it was stored.
pub(crate) fn unsigned(value: i64) -> u64 {
    if value == i64::MAX { u64::MAX } else { u64::try_from(value).unwrap_or(0) }
}

/// A moment as stored.
pub(crate) fn moment(time: Timestamp) -> i64 {
    signed(time.0)
}

/// A quota, from its columns.
pub(crate) fn quota((sandboxes, cpu_millis, memory_bytes, disk_bytes): (i64, i64, i64, i64)) -> Quota {
    Quota {
        sandboxes: u32::try_from(unsigned(sandboxes)).unwrap_or(u32::MAX),
        cpu_millis: unsigned(cpu_millis),
        memory_bytes: unsigned(memory_bytes),
        disk_bytes: unsigned(disk_bytes),
    }
}
