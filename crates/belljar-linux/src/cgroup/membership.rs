//! How a process starts in a group, cheaply: born in the v2 tree, and moved by itself in v1 trees while it has one thread.
//!
//! The kernel takes a whole process into a group only after every processor has passed a quiet moment, some ten milliseconds on a busy
//! machine, each time. It waits neither for a process that is born in the group nor for a lone thread that moves itself.

use std::fs::OpenOptions;
use std::os::fd::OwnedFd;

use super::{Cgroup, CgroupError};

/// A control group to start in.
#[derive(Debug, Default)]
pub struct Membership {
    /// Its directory in the v2 tree, in which the process is born.
    pub unified: Option<OwnedFd>,
    /// Its `tasks` files in v1 trees, open for writing; the process puts itself there.
    pub tasks: Vec<OwnedFd>,
}

impl Cgroup {
    /// Opens the group for a process that is to start in it.
    pub fn membership(&self) -> Result<Membership, CgroupError> {
        let mut membership = Membership::default();
        for (directory, v2) in self.directories() {
            let (path, mut options) = (if v2 { directory } else { directory.join("tasks") }, OpenOptions::new());
            let opened = if v2 { options.read(true) } else { options.write(true) }.open(&path);
            let opened = opened.map(OwnedFd::from).map_err(|source| CgroupError::Open { path, source })?;
            if v2 { membership.unified = Some(opened) } else { membership.tasks.push(opened) }
        }
        Ok(membership)
    }
}
