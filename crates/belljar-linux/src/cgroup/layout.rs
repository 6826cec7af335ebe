//! What is mounted on this host, and which hierarchy serves which purpose.
//!
//! Only hierarchies that are needed are chosen: each one more costs a `mkdir` and an attach for every sandbox.

use std::fs;
use std::path::{Path, PathBuf};

use super::CgroupError;

/// A controller that Belljar uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Controller {
    /// Quota of CPU time.
    Cpu,
    /// Counting of CPU time (v1 only; v2 always counts).
    Cpuacct,
    /// Memory and swap.
    Memory,
    /// Number of tasks.
    Pids,
    /// Stopping all tasks (v1 only; v2 always can).
    Freezer,
    /// Which devices may be opened (v1 only).
    Devices,
}

impl Controller {
    const ALL: [Self; 6] = [Self::Cpu, Self::Cpuacct, Self::Memory, Self::Pids, Self::Freezer, Self::Devices];

    /// The kernel's name for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cpuacct => "cpuacct",
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Freezer => "freezer",
            Self::Devices => "devices",
        }
    }
}

/// How cgroups are mounted, for reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutKind {
    /// One v2 tree with controllers.
    V2,
    /// v1 controllers beside a v2 tree.
    Hybrid,
    /// v1 controllers only.
    V1,
}

/// One mounted hierarchy that is used.
#[derive(Debug, Clone)]
pub(super) struct Hierarchy {
    pub(super) path: PathBuf,
    pub(super) v2: bool,
    pub(super) controllers: Vec<Controller>,
}

/// The hierarchies in use on this host.
#[derive(Debug, Clone)]
pub struct Layout {
    pub(super) hierarchies: Vec<Hierarchy>,
}

impl Layout {
    /// Finds out what this process sees mounted.
    pub fn detect() -> Result<Self, CgroupError> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(CgroupError::Detect)?;
        Self::from_mountinfo(&mounts)
    }

    /// The layout in these lines of `/proc/<pid>/mountinfo`.
    pub fn from_mountinfo(mounts: &str) -> Result<Self, CgroupError> {
        let v2 = mounts.lines().filter_map(parse_mount).find(|mount| mount.kind == "cgroup2");
        let v1 = mounts.lines().filter_map(parse_mount).filter(|mount| mount.kind == "cgroup");
        Self::choose(v2.map(|mount| mount.path), v1.map(|mount| (mount.path, mount.super_options)))
    }

    /// The layout below one directory: a v2 tree, or a directory with one directory per v1 controller.
    pub fn at(root: &Path) -> Result<Self, CgroupError> {
        if root.join("cgroup.controllers").exists() {
            return Self::choose(Some(root.to_owned()), std::iter::empty());
        }
        let named = Controller::ALL.iter().map(|controller| (root.join(controller.as_str()), controller.as_str().to_owned()));
        let unified = Some(root.join("unified")).filter(|path| path.join("cgroup.controllers").exists());
        Self::choose(unified, named.filter(|(path, _)| path.join("cgroup.procs").exists()))
    }

    fn choose(v2: Option<PathBuf>, v1: impl Iterator<Item = (PathBuf, String)>) -> Result<Self, CgroupError> {
        let mut hierarchies = Vec::new();
        let mut found = Vec::new();
        if let Some(path) = v2 {
            let offered = fs::read_to_string(path.join("cgroup.controllers")).map_err(CgroupError::Detect)?;
            let controllers: Vec<_> =
                Controller::ALL.into_iter().filter(|c| offered.split_whitespace().any(|word| word == c.as_str())).collect();
            found.extend([Controller::Cpuacct, Controller::Freezer]);
            found.extend(&controllers);
            hierarchies.push(Hierarchy { path, v2: true, controllers });
        }
        for (path, options) in v1 {
            let controllers: Vec<_> = Controller::ALL
                .into_iter()
                .filter(|c| !found.contains(c) && options.split(',').any(|option| option == c.as_str()))
                .collect();
            if !controllers.is_empty() {
                found.extend(&controllers);
                hierarchies.push(Hierarchy { path, v2: false, controllers });
            }
        }
        if found.contains(&Controller::Freezer) { Ok(Self { hierarchies }) } else { Err(CgroupError::NoFreezer) }
    }

    /// v2, v1 or both.
    pub fn kind(&self) -> LayoutKind {
        match (self.hierarchies.iter().any(|h| h.v2), self.hierarchies.iter().any(|h| !h.v2)) {
            (true, false) => LayoutKind::V2,
            (true, true) => LayoutKind::Hybrid,
            (false, _) => LayoutKind::V1,
        }
    }

    /// Whether a limit of this kind can be enforced.
    pub fn has(&self, controller: Controller) -> bool {
        self.hierarchies.iter().any(|h| h.controllers.contains(&controller))
    }
}

struct Mounted {
    path: PathBuf,
    kind: String,
    super_options: String,
}

fn parse_mount(line: &str) -> Option<Mounted> {
    let (before, after) = line.split_once(" - ")?;
    let path = before.split(' ').nth(4)?.replace("\\040", " ");
    let mut after = after.split(' ');
    Some(Mounted { path: path.into(), kind: after.next()?.to_owned(), super_options: after.nth(1)?.to_owned() })
}
