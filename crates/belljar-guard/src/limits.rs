//! Limits on what the command may use: by a control group where we may make one, which is as root, or by the kernel's count of processes in
//! a user namespace. What cannot be enforced is refused.

use belljar_linux::cgroup::{Cgroup, CgroupError, CgroupLimits, Layout, Membership, Tree};

use crate::errors::GuardError;

/// Upper bounds; `None` leaves a resource alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory in all.
    pub memory_bytes: Option<u64>,
    /// Thousandths of one processor.
    pub cpu_millis: Option<u32>,
    /// Processes and threads.
    pub pids: Option<u32>,
}

/// How they are enforced for one run.
#[derive(Debug, Default)]
pub(crate) struct Enforced {
    group: Option<Cgroup>,
    pub(crate) membership: Membership,
    /// To be set as the limit on processes inside.
    pub(crate) process_limit: Option<u32>,
}

const TREE: &str = "belljar-run";
/// The first process counts too.
const OWN_PROCESSES: u32 = 1;

impl Enforced {
    pub(crate) fn new(limits: &Limits, is_root: bool) -> Result<Self, GuardError> {
        if *limits == Limits::default() {
            return Ok(Self::default());
        }
        let process_limit = limits.pids.map(|pids| pids.saturating_add(OWN_PROCESSES));
        if is_root {
            let group = make_group(limits, process_limit).map_err(GuardError::ControlGroup)?;
            let membership = group.membership().map_err(GuardError::ControlGroup)?;
            return Ok(Self { group: Some(group), membership, process_limit: None });
        }
        for (limit, asked) in [("memory", limits.memory_bytes.is_some()), ("cpus", limits.cpu_millis.is_some())] {
            if asked {
                return Err(GuardError::NeedsControlGroup { limit });
            }
        }
        Ok(Self { group: None, membership: Membership::default(), process_limit })
    }

    /// Whether the kernel killed something inside for memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.group.as_ref().is_some_and(|group| group.oom_kills().unwrap_or(0) > 0)
    }
}

impl Drop for Enforced {
    fn drop(&mut self) {
        if let Some(group) = &self.group {
            // What stays is empty, and the next run with limits removes it.
            let _ = group.remove();
        }
    }
}

fn make_group(limits: &Limits, pids: Option<u32>) -> Result<Cgroup, CgroupError> {
    let tree = Tree::open(&Layout::detect()?, TREE)?;
    for name in tree.names()? {
        let is_dead = |pid: u32| pid == std::process::id() || !std::path::Path::new("/proc").join(pid.to_string()).exists();
        if name.parse().is_ok_and(is_dead) {
            tree.group(&name).remove()?;
        }
    }
    let limits = CgroupLimits { cpu_millis: limits.cpu_millis, memory_bytes: limits.memory_bytes, pids };
    tree.create(&std::process::id().to_string(), &limits)
}
