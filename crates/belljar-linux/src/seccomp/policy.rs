//! Which system calls a container's processes may make, as data.
//!
//! The list follows what ordinary work needs: package managers, compilers, servers, debuggers. `ptrace` is in: every process
//! inside shares one user and pid namespace with its tracer, so a debugger reaches nothing that its user does not own already.

use libc::{EAFNOSUPPORT, ENOSYS, ENOTTY, EPERM, EPROTONOSUPPORT};

use super::calls;

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It goes through.
    Allow,
    /// It fails with this error number.
    Errno(i32),
    /// Its process dies of `SIGSYS`.
    KillProcess,
}

impl Verdict {
    pub(crate) fn as_return_value(self) -> u32 {
        match self {
            Self::Allow => libc::SECCOMP_RET_ALLOW,
            Self::Errno(number) => libc::SECCOMP_RET_ERRNO | (number.cast_unsigned() & libc::SECCOMP_RET_DATA),
            Self::KillProcess => libc::SECCOMP_RET_KILL_PROCESS,
        }
    }
}

/// What an argument is asked. Only its low half: every argument looked at here is an `int` to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// It is this.
    Equals(u32),
    /// At least one of these bits is set.
    HasAnyOf(u32),
    /// The bits under the mask are this.
    MaskedEquals {
        /// Which bits count.
        mask: u32,
        /// What they must be.
        value: u32,
    },
}

/// A question about one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// Which one, from 0.
    pub argument: u8,
    /// What is asked.
    pub test: Test,
}

/// If all conditions hold, the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clause {
    /// All must hold.
    pub conditions: &'static [Condition],
    /// Then this.
    pub verdict: Verdict,
}

/// What is done with a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The same whatever its arguments.
    Always(Verdict),
    /// The first clause whose conditions hold, or else the last word.
    ByArguments {
        /// Asked in order.
        clauses: &'static [Clause],
        /// If none holds.
        otherwise: Verdict,
    },
}

/// A rule for every system call number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    conditional: &'static [(libc::c_long, Rule)],
    allowed: &'static [libc::c_long],
    refused: &'static [libc::c_long],
}

impl Policy {
    /// For the processes of a container.
    pub const CONTAINER: Self = Self { conditional: CONDITIONAL, allowed: calls::ALLOWED, refused: calls::REFUSED };

    /// The rule for this number. What is in no list does not exist.
    pub fn rule(&self, number: u32) -> Rule {
        let number = libc::c_long::from(number);
        if let Some((_, rule)) = self.conditional.iter().find(|(conditional, _)| *conditional == number) {
            return *rule;
        }
        Rule::Always(if self.refused.contains(&number) {
            Verdict::Errno(EPERM)
        } else if self.allowed.contains(&number) {
            Verdict::Allow
        } else {
            Verdict::Errno(ENOSYS)
        })
    }

    /// The highest number that is in a list.
    pub fn highest(&self) -> u32 {
        let conditional = self.conditional.iter().map(|(number, _)| *number);
        let numbers = conditional.chain(self.allowed.iter().copied()).chain(self.refused.iter().copied());
        numbers.max().and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
    }
}

const fn when(argument: u8, test: Test) -> Condition {
    Condition { argument, test }
}

const NEW_NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;
/// Only `unshare` can ask for it; in `clone` the bit is part of a signal's number.
const NEW_TIME: u32 = 0x80;

const NO_CLONE_OF_NAMESPACES: Rule = Rule::ByArguments {
    clauses: &[Clause { conditions: &[when(0, Test::HasAnyOf(NEW_NAMESPACES))], verdict: Verdict::Errno(EPERM) }],
    otherwise: Verdict::Allow,
};

const NO_UNSHARING_OF_NAMESPACES: Rule = Rule::ByArguments {
    clauses: &[Clause { conditions: &[when(0, Test::HasAnyOf(NEW_NAMESPACES | NEW_TIME))], verdict: Verdict::Errno(EPERM) }],
    otherwise: Verdict::Allow,
};

const fn answer(conditions: &'static [Condition], verdict: Verdict) -> Clause {
    Clause { conditions, verdict }
}

/// Typing into terminals of others, the console, and btrfs's own verbs (subvolumes and quotas are the host's business); copying
/// by reference is ordinary work. File flags and projects would reach the pool's filesystem below the overlay.
const TERMINALS_AND_FILES: Rule = Rule::ByArguments {
    clauses: &[
        answer(&[when(1, Test::Equals(0x5412))], Verdict::Errno(EPERM)), // TIOCSTI
        answer(&[when(1, Test::Equals(0x541c))], Verdict::Errno(EPERM)), // TIOCLINUX
        answer(&[when(1, Test::Equals(0x4004_9409))], Verdict::Allow),   // FICLONE
        answer(&[when(1, Test::Equals(0x4020_940d))], Verdict::Allow),   // FICLONERANGE
        answer(&[when(1, Test::Equals(0xc018_9436))], Verdict::Allow),   // FIDEDUPERANGE
        answer(&[when(1, Test::MaskedEquals { mask: 0xff00, value: 0x9400 })], Verdict::Errno(ENOTTY)), // btrfs
        answer(&[when(1, Test::Equals(0x4008_6602))], Verdict::Errno(ENOTTY)), // FS_IOC_SETFLAGS
        answer(&[when(1, Test::Equals(0x401c_5820))], Verdict::Errno(ENOTTY)), // FS_IOC_FSSETXATTR
    ],
    otherwise: Verdict::Allow,
};

const SOCKET_KIND: u32 = 0xf;
const fn kind(kind: libc::c_int) -> Condition {
    when(1, Test::MaskedEquals { mask: SOCKET_KIND, value: kind as u32 })
}
const fn family(family: libc::c_int) -> Condition {
    when(0, Test::Equals(family as u32))
}
const fn protocol(protocol: libc::c_int) -> Condition {
    when(2, Test::Equals(protocol as u32))
}
const fn allow(conditions: &'static [Condition]) -> Clause {
    Clause { conditions, verdict: Verdict::Allow }
}

/// Unix sockets, TCP, UDP and `ping`, and route netlink to read addresses: the families with the longest record of holes stay shut.
const SOCKETS: Rule = Rule::ByArguments {
    clauses: &[
        allow(&[family(libc::AF_UNIX)]),
        allow(&[family(libc::AF_INET), kind(libc::SOCK_STREAM), protocol(0)]),
        allow(&[family(libc::AF_INET), kind(libc::SOCK_STREAM), protocol(libc::IPPROTO_TCP)]),
        allow(&[family(libc::AF_INET), kind(libc::SOCK_DGRAM), protocol(0)]),
        allow(&[family(libc::AF_INET), kind(libc::SOCK_DGRAM), protocol(libc::IPPROTO_UDP)]),
        allow(&[family(libc::AF_INET), kind(libc::SOCK_DGRAM), protocol(libc::IPPROTO_ICMP)]),
        allow(&[family(libc::AF_INET6), kind(libc::SOCK_STREAM), protocol(0)]),
        allow(&[family(libc::AF_INET6), kind(libc::SOCK_STREAM), protocol(libc::IPPROTO_TCP)]),
        allow(&[family(libc::AF_INET6), kind(libc::SOCK_DGRAM), protocol(0)]),
        allow(&[family(libc::AF_INET6), kind(libc::SOCK_DGRAM), protocol(libc::IPPROTO_UDP)]),
        allow(&[family(libc::AF_INET6), kind(libc::SOCK_DGRAM), protocol(libc::IPPROTO_ICMPV6)]),
        allow(&[family(libc::AF_NETLINK), protocol(libc::NETLINK_ROUTE)]),
        answer(&[family(libc::AF_INET), kind(libc::SOCK_RAW)], Verdict::Errno(EPERM)),
        answer(&[family(libc::AF_INET6), kind(libc::SOCK_RAW)], Verdict::Errno(EPERM)),
        answer(&[family(libc::AF_INET)], Verdict::Errno(EPROTONOSUPPORT)),
        answer(&[family(libc::AF_INET6)], Verdict::Errno(EPROTONOSUPPORT)),
        answer(&[family(libc::AF_NETLINK)], Verdict::Errno(EPROTONOSUPPORT)),
    ],
    otherwise: Verdict::Errno(EAFNOSUPPORT),
};

const SOCKET_PAIRS: Rule = Rule::ByArguments { clauses: &[allow(&[family(libc::AF_UNIX)])], otherwise: Verdict::Errno(EAFNOSUPPORT) };

/// Linux as it is, 32-bit `uname`, no randomised addresses (debuggers), and asking what is set.
const PERSONALITIES: Rule = Rule::ByArguments {
    clauses: &[
        allow(&[when(0, Test::Equals(0))]),
        allow(&[when(0, Test::Equals(8))]),
        allow(&[when(0, Test::Equals(0x0002_0000))]),
        allow(&[when(0, Test::Equals(0x0002_0008))]),
        allow(&[when(0, Test::Equals(0x0004_0000))]),
        allow(&[when(0, Test::Equals(u32::MAX))]),
    ],
    otherwise: Verdict::Errno(EPERM),
};

const CONDITIONAL: &[(libc::c_long, Rule)] = &[
    (libc::SYS_clone, NO_CLONE_OF_NAMESPACES),
    (libc::SYS_unshare, NO_UNSHARING_OF_NAMESPACES),
    (libc::SYS_ioctl, TERMINALS_AND_FILES),
    (libc::SYS_socket, SOCKETS),
    (libc::SYS_socketpair, SOCKET_PAIRS),
    (libc::SYS_personality, PERSONALITIES),
];
