//! Everything Belljar asks of the Linux kernel, behind safe functions.
//!
//! This is the only crate with `unsafe`: whoever audits memory safety reads this crate and no other. It knows nothing of
//! sandboxes; it offers namespaces, mounts, cgroups, quotas, filters and processes, each in its own module.
#![allow(
    unsafe_code,
    reason = "the one crate where system calls without a safe wrapper are made; see the lint note in the workspace manifest"
)]

pub mod attributes;
pub mod btrfs;
pub mod caps;
pub mod cgroup;
pub mod child;
mod clone;
pub mod guarded;
pub mod idmap;
pub mod landlock;
pub mod late_free;
pub mod launch;
pub mod loopdev;
pub mod memory;
pub mod mount;
pub mod nearby;
pub mod netns;
pub mod pidfd;
pub mod private_file;
pub mod readiness;
pub mod removal;
pub mod resolve;
pub mod rlimit;
pub mod seccomp;
pub mod shim;
pub mod write_out;
