//! Control groups, the same verbs on every layout in the field: v2 alone, v1 alone, and both side by side ("hybrid").
//!
//! Each ability is taken from where it is best. Freezing, killing and knowing whether anything still runs come from v2 as soon as a v2
//! tree is mounted, even one without controllers, because it notifies and kills atomically; the v1 freezer stands in otherwise. Limits
//! come from whichever tree holds the controller. A limit whose controller is nowhere is an error: nothing is left unenforced in silence.
//!
//! ```text
//!   Layout  what is mounted on this host          (found once)
//!   Tree    one directory per hierarchy           (one per instance, e.g. /sys/fs/cgroup/memory/belljar-x)
//!   Cgroup  one child of each of them             (one per sandbox, found again by its name alone)
//! ```

mod files;
mod group;
mod layout;
mod membership;
mod tree;

use std::io;
use std::path::PathBuf;

pub use group::Cgroup;
pub use layout::{Controller, Layout, LayoutKind};
pub use membership::Membership;
pub use tree::Tree;

/// Upper bounds; `None` leaves a resource alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CgroupLimits {
    /// Thousandths of one processor.
    pub cpu_millis: Option<u32>,
    /// Bytes of memory, with no swap on top.
    pub memory_bytes: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u32>,
}

/// What a group used, counted by the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CgroupUsage {
    /// CPU time in microseconds.
    pub cpu_micros: u64,
    /// Memory now.
    pub memory_bytes: u64,
    /// Most memory so far.
    pub memory_peak_bytes: u64,
    /// Processes and threads now.
    pub pids: u32,
}

/// What went wrong with a control group, by what was being attempted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CgroupError {
    /// The list of mounts cannot be read.
    #[error("read the list of mounted cgroup hierarchies")]
    Detect(#[source] io::Error),
    /// No hierarchy has the controller that a limit needs.
    #[error("no cgroup hierarchy on this host has the {controller} controller; mount cgroup v2 at /sys/fs/cgroup, or the v1 controller")]
    NoController {
        /// What is missing.
        controller: &'static str,
    },
    /// Neither v2 nor the v1 freezer is there, so processes cannot be stopped together.
    #[error("no cgroup v2 tree and no v1 freezer is mounted; mount cgroup v2 at /sys/fs/cgroup")]
    NoFreezer,
    /// A directory could not be made.
    #[error("make the cgroup {path}")]
    Create {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A group could not be opened to start something in it.
    #[error("open the cgroup {path} to start a process in it")]
    Open {
        /// Its directory or control file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A control file could not be read.
    #[error("read {file} of the cgroup {path}")]
    Read {
        /// The group's directory.
        path: PathBuf,
        /// The file in it.
        file: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A control file could not be written.
    #[error("write {file} of the cgroup {path}")]
    Write {
        /// The group's directory.
        path: PathBuf,
        /// The file in it.
        file: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The kernel did not stop all processes in time.
    #[error("freeze the cgroup {path}: some process did not stop in time")]
    Freeze {
        /// The group's directory.
        path: PathBuf,
    },
    /// Waiting for an event failed.
    #[error("wait for an event of the cgroup {path}")]
    Wait {
        /// The group's directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A directory could not be removed.
    #[error("remove the cgroup {path}")]
    Remove {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}
