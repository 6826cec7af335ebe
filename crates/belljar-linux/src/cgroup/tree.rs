//! The directory of one instance in every hierarchy, and the making of groups below it.
//!
//! What all groups share is set once here (v2 controllers handed down, v1 device rules, which children inherit), so that making
//! a group is one `mkdir` per hierarchy and one write per limit.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

use super::group::Cgroup;
use super::layout::{Controller, Hierarchy, Layout};
use super::{CgroupError, CgroupLimits, files};

/// null, zero, full, random, urandom, tty, ptmx and pseudo-terminals.
const ALLOWED_DEVICES: [&str; 8] =
    ["c 1:3 rwm", "c 1:5 rwm", "c 1:7 rwm", "c 1:8 rwm", "c 1:9 rwm", "c 5:0 rwm", "c 5:2 rwm", "c 136:* rwm"];

#[derive(Debug)]
pub(super) struct Node {
    pub(super) directory: OwnedFd,
    pub(super) path: PathBuf,
    pub(super) hierarchy: Hierarchy,
}

/// One instance's directory in each hierarchy.
#[derive(Debug)]
pub struct Tree {
    pub(super) nodes: Vec<Node>,
}

impl Tree {
    /// Makes the directories, or takes over those that are there.
    pub fn open(layout: &Layout, name: &str) -> Result<Arc<Self>, CgroupError> {
        let mut nodes = Vec::new();
        for hierarchy in &layout.hierarchies {
            let path = hierarchy.path.join(name);
            let directory = open_or_make(&path).map_err(|source| CgroupError::Create { path: path.clone(), source })?;
            let node = Node { directory, path, hierarchy: hierarchy.clone() };
            if node.hierarchy.v2 {
                node.hand_down_controllers()?;
            } else if node.hierarchy.controllers.contains(&Controller::Devices) {
                node.restrict_devices()?;
            }
            nodes.push(node);
        }
        Ok(Arc::new(Self { nodes }))
    }

    /// Makes a group with these limits. If one of them cannot be set, no group is left.
    pub fn create(self: &Arc<Self>, name: &str, limits: &CgroupLimits) -> Result<Cgroup, CgroupError> {
        let group = self.group(name);
        for node in &self.nodes {
            let made = rustix::fs::mkdirat(&node.directory, name, Mode::from_raw_mode(0o755));
            if let Err(source) = made {
                let path = node.path.join(name);
                if source != rustix::io::Errno::EXIST {
                    group.remove_directories_at_once();
                }
                return Err(CgroupError::Create { path, source: source.into() });
            }
        }
        self.set_limits(&group, limits).inspect_err(|_| group.remove_directories_at_once())?;
        Ok(group)
    }

    /// The group of this name, whether or not it exists.
    pub fn group(self: &Arc<Self>, name: &str) -> Cgroup {
        Cgroup::new(self.clone(), name)
    }

    /// The names of all groups that are there, in whatever hierarchy.
    pub fn names(&self) -> Result<Vec<String>, CgroupError> {
        let mut names = Vec::new();
        for node in &self.nodes {
            let found = files::open_directory(&node.directory, ".").and_then(files::child_directories);
            names.extend(found.map_err(|source| CgroupError::Read { path: node.path.clone(), file: ".", source })?);
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Removes the instance's own directories; its groups must be gone.
    pub fn remove(&self) -> Result<(), CgroupError> {
        for node in &self.nodes {
            match std::fs::remove_dir(&node.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(CgroupError::Remove { path: node.path.clone(), source: error });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The hierarchy that freezes, kills and tells whether anything runs.
    pub(super) fn core(&self) -> &Node {
        let v2 = self.nodes.iter().find(|node| node.hierarchy.v2);
        v2.or_else(|| self.with(Controller::Freezer)).expect("a layout always has v2 or the freezer")
    }

    pub(super) fn with(&self, controller: Controller) -> Option<&Node> {
        self.nodes.iter().find(|node| node.hierarchy.controllers.contains(&controller))
    }

    fn set_limits(&self, group: &Cgroup, limits: &CgroupLimits) -> Result<(), CgroupError> {
        if let Some(pids) = limits.pids {
            group.write(self.needed(Controller::Pids)?, "pids.max", &pids.to_string())?;
        }
        if let Some(bytes) = limits.memory_bytes {
            let node = self.needed(Controller::Memory)?;
            if node.hierarchy.v2 {
                group.write(node, "memory.max", &bytes.to_string())?;
                group.write_if_there(node, "memory.swap.max", "0")?;
            } else {
                group.write(node, "memory.limit_in_bytes", &bytes.to_string())?;
                if !group.write_if_there(node, "memory.memsw.limit_in_bytes", &bytes.to_string())? {
                    group.write(node, "memory.swappiness", "0")?;
                }
            }
        }
        if let Some(millis) = limits.cpu_millis {
            group.set_cpu_limit(Some(millis))?;
        }
        Ok(())
    }

    pub(super) fn needed(&self, controller: Controller) -> Result<&Node, CgroupError> {
        self.with(controller).ok_or(CgroupError::NoController { controller: controller.as_str() })
    }
}

impl Node {
    fn write(&self, file: &'static str, text: &str) -> Result<(), CgroupError> {
        files::write(&self.directory, file, text).map_err(|source| CgroupError::Write { path: self.path.clone(), file, source })
    }

    fn hand_down_controllers(&self) -> Result<(), CgroupError> {
        const FILE: &str = "cgroup.subtree_control";
        let wanted = self.hierarchy.controllers.iter().map(|c| format!("+{}", c.as_str())).collect::<Vec<_>>().join(" ");
        if wanted.is_empty() {
            return Ok(());
        }
        std::fs::write(self.hierarchy.path.join(FILE), &wanted).map_err(|source| CgroupError::Write {
            path: self.hierarchy.path.clone(),
            file: FILE,
            source,
        })?;
        self.write(FILE, &wanted)
    }

    /// Children copy these rules when they are made; the kernel refuses to take everything away once there are children.
    fn restrict_devices(&self) -> Result<(), CgroupError> {
        const LIST: &str = "devices.list";
        let rules =
            files::read(&self.directory, LIST).map_err(|source| CgroupError::Read { path: self.path.clone(), file: LIST, source })?;
        if rules.starts_with("a ") {
            self.write("devices.deny", "a")?;
        }
        ALLOWED_DEVICES
            .iter()
            .filter(|rule| !rules.lines().any(|line| line == **rule))
            .try_for_each(|rule| self.write("devices.allow", rule))
    }
}

fn open_or_make(path: &Path) -> io::Result<OwnedFd> {
    match rustix::fs::mkdir(path, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(other) => return Err(other.into()),
    }
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}
