//! Per-process limits, never asking for more than this process itself may have: raising a hard limit needs a privilege that the
//! host may have taken from us.

use std::io;

/// A limit to set, as the kernel takes it.
#[derive(Debug, Clone, Copy)]
pub struct ProcessLimit {
    pub(crate) resource: libc::__rlimit_resource_t,
    pub(crate) value: libc::rlimit64,
}

/// What can be limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Size of a core dump.
    Core,
    /// Open descriptors.
    Descriptors,
    /// Bytes that cannot be swapped out.
    LockedMemory,
    /// Real-time priority.
    RealTimePriority,
    /// How far `nice` can be raised.
    Nice,
    /// Bytes in POSIX message queues.
    MessageQueues,
}

impl Resource {
    fn number(self) -> libc::__rlimit_resource_t {
        match self {
            Self::Core => libc::RLIMIT_CORE,
            Self::Descriptors => libc::RLIMIT_NOFILE,
            Self::LockedMemory => libc::RLIMIT_MEMLOCK,
            Self::RealTimePriority => libc::RLIMIT_RTPRIO,
            Self::Nice => libc::RLIMIT_NICE,
            Self::MessageQueues => libc::RLIMIT_MSGQUEUE,
        }
    }
}

impl ProcessLimit {
    /// This soft and hard limit, or as much of it as this process may have.
    pub fn at_most(resource: Resource, soft: u64, hard: u64) -> io::Result<Self> {
        let mut own = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `own` is a valid place to write to.
        if unsafe { libc::getrlimit64(resource.number(), &raw mut own) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let hard = hard.min(own.rlim_max);
        Ok(Self { resource: resource.number(), value: libc::rlimit64 { rlim_cur: soft.min(hard), rlim_max: hard } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_more_than_we_have() {
        let limit = ProcessLimit::at_most(Resource::Descriptors, u64::MAX, u64::MAX).unwrap();
        assert!(limit.value.rlim_cur <= limit.value.rlim_max);
        let small = ProcessLimit::at_most(Resource::Descriptors, 16, 32).unwrap();
        assert_eq!((small.value.rlim_cur, small.value.rlim_max), (16, 32));
    }
}
