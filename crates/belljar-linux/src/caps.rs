//! Sets of capabilities, by the kernel's own numbers.

use std::fmt;

/// A set of capabilities.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CapabilitySet(u64);

/// The highest capability that any kernel we know of has; asking it to drop one it does not have is harmless.
pub(crate) const LAST: u32 = 40;

impl CapabilitySet {
    /// None at all.
    pub const NONE: Self = Self(0);

    /// What root inside a container keeps: what installing packages and serving needs, and nothing that changes mounts, network,
    /// devices, time or other processes' memory. All of it counts only inside the sandbox's own user namespace.
    pub const ORDINARY_ROOT: Self = Self(
        1 << 0 // CHOWN
            | 1 << 1 // DAC_OVERRIDE
            | 1 << 3 // FOWNER
            | 1 << 4 // FSETID
            | 1 << 5 // KILL
            | 1 << 6 // SETGID
            | 1 << 7 // SETUID
            | 1 << 8 // SETPCAP
            | 1 << 10 // NET_BIND_SERVICE
            | 1 << 18 // SYS_CHROOT
            | 1 << 29 // AUDIT_WRITE
            | 1 << 31, // SETFCAP
    );

    /// As a mask.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Whether it holds the capability with this number.
    pub const fn holds(self, number: u32) -> bool {
        number < 64 && self.0 >> number & 1 == 1
    }
}

impl fmt::Debug for CapabilitySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CapabilitySet({:016x})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_keeps_no_power_over_mounts_network_devices_or_memory() {
        const NET_ADMIN: u32 = 12;
        const NET_RAW: u32 = 13;
        const SYS_MODULE: u32 = 16;
        const SYS_PTRACE: u32 = 19;
        const SYS_ADMIN: u32 = 21;
        const MKNOD: u32 = 27;
        for forbidden in [2, NET_ADMIN, NET_RAW, SYS_MODULE, SYS_PTRACE, SYS_ADMIN, MKNOD] {
            assert!(!CapabilitySet::ORDINARY_ROOT.holds(forbidden), "capability {forbidden}");
        }
        assert_eq!(CapabilitySet::ORDINARY_ROOT.bits().count_ones(), 12);
    }
}
