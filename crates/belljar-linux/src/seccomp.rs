//! The filter that says which system calls go through.
//!
//! It is an allow-list, compiled to a binary search over ranges of numbers. At installation the kernel runs a filter once for
//! every number to learn which calls it always allows, so a list of comparisons costs a millisecond per sandbox and a tree less
//! than a tenth of that.
//!
//! What is refused, and how it is told:
//! * numbers we do not know, and interfaces that libraries only try out (`clone3`, `io_uring`): `ENOSYS`, as from a kernel without
//!   them, so that the C library takes the older way;
//! * what nobody in a sandbox may do (mounts, namespaces, modules, keys, tracing of the kernel): `EPERM`;
//! * numbers with the x32 bit: `ENOSYS`, as from a kernel without x32;
//! * another architecture's entry (i386): the process is killed. Its numbers mean other calls than ours, an honest 64-bit program
//!   never goes there, and a death by `SIGSYS` says what happened where an error number would not.

mod assemble;
mod calls;
mod policy;
#[cfg(test)]
mod tests;

pub use policy::{Clause, Condition, Policy, Rule, Test, Verdict};

/// A compiled filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program(Vec<Instruction>);

/// One instruction of classic BPF, as the kernel lays it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Instruction {
    pub(crate) code: u16,
    pub(crate) jump_true: u8,
    pub(crate) jump_false: u8,
    pub(crate) value: u32,
}

impl Program {
    /// Compiles a policy.
    pub fn compile(policy: &Policy) -> Self {
        Self(assemble::assemble(policy))
    }

    /// How many instructions it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has none, which no compiled policy has.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn as_kernel_program(&self) -> libc::sock_fprog {
        // The kernel only reads it. A filter past 65535 instructions would be cut short here and refused there.
        libc::sock_fprog { len: u16::try_from(self.0.len()).unwrap_or(u16::MAX), filter: self.0.as_ptr().cast_mut().cast() }
    }
}
