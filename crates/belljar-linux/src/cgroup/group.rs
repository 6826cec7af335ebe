//! One group: what runs in it is attached, stopped, counted and ended together.
//!
//! Every verb works on whatever remains of a group, also after a crash half-way through making it.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use super::layout::Controller;
use super::tree::{Node, Tree};
use super::{CgroupError, CgroupUsage, files};

/// A quota below one millisecond is refused by the kernel, so small shares need the long period.
const SHORT_PERIOD_MICROS: u64 = 20_000;
const LONG_PERIOD_MICROS: u64 = 100_000;
const LEAST_QUOTA_MICROS: u64 = 1_000;

const FREEZE_DEADLINE: Duration = Duration::from_secs(2);
const REMOVE_DEADLINE: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_micros(200);
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// A group of processes with common limits.
#[derive(Clone)]
pub struct Cgroup {
    tree: Arc<Tree>,
    name: Arc<str>,
}

impl fmt::Debug for Cgroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cgroup({})", self.path().display())
    }
}

impl Cgroup {
    pub(super) fn new(tree: Arc<Tree>, name: &str) -> Self {
        Self { tree, name: name.into() }
    }

    /// Its name below the instance's directory.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its directory in the hierarchy that freezes and kills.
    pub fn path(&self) -> PathBuf {
        self.tree.core().path.join(&*self.name)
    }

    /// Its directory in each hierarchy, and whether that is the v2 tree.
    pub(super) fn directories(&self) -> impl Iterator<Item = (PathBuf, bool)> {
        self.tree.nodes.iter().map(|node| (node.path.join(&*self.name), node.hierarchy.v2))
    }

    /// Files to which a process writes `0` to put itself into the group; all of them are needed.
    pub fn procs_paths(&self) -> Vec<PathBuf> {
        self.tree.nodes.iter().map(|node| node.path.join(&*self.name).join("cgroup.procs")).collect()
    }

    /// Whether any directory of it exists.
    pub fn exists(&self) -> bool {
        self.tree
            .nodes
            .iter()
            .any(|node| rustix::fs::accessat(&node.directory, &*self.name, rustix::fs::Access::EXISTS, AtFlags::empty()).is_ok())
    }

    /// Moves a process into the group, with all its threads.
    pub fn attach(&self, pid: u32) -> Result<(), CgroupError> {
        let text = pid.to_string();
        self.tree.nodes.iter().try_for_each(|node| self.write(node, "cgroup.procs", &text))
    }

    /// Replaces the limit on processes and threads.
    pub fn set_pids_limit(&self, pids: u32) -> Result<(), CgroupError> {
        self.write(self.tree.needed(Controller::Pids)?, "pids.max", &pids.to_string())
    }

    /// Replaces the limit on processor time, in thousandths of one processor; `None` lifts it.
    pub fn set_cpu_limit(&self, millis: Option<u32>) -> Result<(), CgroupError> {
        let node = self.tree.needed(Controller::Cpu)?;
        let Some(millis) = millis.map(u64::from) else {
            return if node.hierarchy.v2 { self.write(node, "cpu.max", "max") } else { self.write(node, "cpu.cfs_quota_us", "-1") };
        };
        let period = if millis * SHORT_PERIOD_MICROS / 1000 >= LEAST_QUOTA_MICROS { SHORT_PERIOD_MICROS } else { LONG_PERIOD_MICROS };
        let quota = (millis * period / 1000).max(LEAST_QUOTA_MICROS);
        if node.hierarchy.v2 {
            self.write(node, "cpu.max", &format!("{quota} {period}"))
        } else {
            self.write(node, "cpu.cfs_period_us", &period.to_string())?;
            self.write(node, "cpu.cfs_quota_us", &quota.to_string())
        }
    }

    /// Stops all processes where they stand and returns when they have stopped.
    pub fn freeze(&self) -> Result<(), CgroupError> {
        if self.set_frozen(true)? { Ok(()) } else { Err(CgroupError::Freeze { path: self.path() }) }
    }

    /// Lets them go on.
    pub fn thaw(&self) -> Result<(), CgroupError> {
        self.set_frozen(false).map(drop)
    }

    /// Whether all processes stand still.
    pub fn is_frozen(&self) -> Result<bool, CgroupError> {
        let core = self.tree.core();
        if core.hierarchy.v2 { Ok(self.event("frozen")?) } else { Ok(self.read(core, "freezer.state")?.trim() == "FROZEN") }
    }

    /// Whether anything runs in it. A group that is not there is empty.
    pub fn is_populated(&self) -> Result<bool, CgroupError> {
        let core = self.tree.core();
        if core.hierarchy.v2 { self.event("populated") } else { Ok(!self.pids_in(core)?.is_empty()) }
    }

    /// An open `cgroup.events`, which becomes ready with `POLLPRI` when anything there changes after it was last read from its start;
    /// `None` without v2.
    pub fn events(&self) -> Result<Option<OwnedFd>, CgroupError> {
        let core = self.tree.core();
        if !core.hierarchy.v2 {
            return Ok(None);
        }
        const FILE: &str = "cgroup.events";
        let opened = rustix::fs::openat(&core.directory, format!("{}/{FILE}", self.name), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        opened.map(Some).map_err(|errno| CgroupError::Read { path: self.path(), file: FILE, source: errno.into() })
    }

    /// Kills everything in it, also what is being forked at this moment. Returns before all are reaped.
    pub fn kill(&self) -> Result<(), CgroupError> {
        let core = self.tree.core();
        if !(core.hierarchy.v2 && self.write_if_there(core, "cgroup.kill", "1")?) {
            self.kill_while_frozen(core)?;
        }
        // A process that was cut short while attaching itself may be in some hierarchies only.
        self.tree.nodes.iter().try_for_each(|node| self.kill_in(node))
    }

    /// Waits until nothing runs in it. `false` if something still does after this time.
    pub fn wait_empty(&self, at_most: Duration) -> Result<bool, CgroupError> {
        let deadline = Instant::now() + at_most;
        self.wait_until(deadline, || Ok(!self.is_populated()?))
    }

    /// How often the kernel killed a process in it for memory.
    pub fn oom_kills(&self) -> Result<u64, CgroupError> {
        let Some(node) = self.tree.with(Controller::Memory) else { return Ok(0) };
        let file = if node.hierarchy.v2 { "memory.events" } else { "memory.oom_control" };
        Ok(files::value(&self.read(node, file)?, "oom_kill").unwrap_or(0))
    }

    /// A number that no other group of this machine had or will have until it is started again, or nearly so: it counts up. `None` if it is not there.
    pub fn generation(&self) -> Result<Option<u64>, CgroupError> {
        match rustix::fs::statat(&self.tree.core().directory, &*self.name, AtFlags::empty()) {
            Ok(found) => Ok(Some(found.st_ino)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(CgroupError::Read { path: self.path(), file: "its number", source: errno.into() }),
        }
    }

    /// What it used so far.
    pub fn usage(&self) -> Result<CgroupUsage, CgroupError> {
        let mut usage = CgroupUsage::default();
        let core = self.tree.core();
        if core.hierarchy.v2 {
            usage.cpu_micros = files::value(&self.read(core, "cpu.stat")?, "usage_usec").unwrap_or(0);
        } else if let Some(node) = self.tree.with(Controller::Cpuacct) {
            usage.cpu_micros = self.number(node, "cpuacct.usage")? / 1000;
        }
        if let Some(node) = self.tree.with(Controller::Memory) {
            let (now, peak) =
                if node.hierarchy.v2 { ("memory.current", "memory.peak") } else { ("memory.usage_in_bytes", "memory.max_usage_in_bytes") };
            usage.memory_bytes = self.number(node, now)?;
            // Kernels before 5.19 have no peak on v2.
            usage.memory_peak_bytes = self.number(node, peak).unwrap_or(usage.memory_bytes);
        }
        usage.pids = match self.tree.with(Controller::Pids) {
            Some(node) => u32::try_from(self.number(node, "pids.current")?).unwrap_or(u32::MAX),
            None => u32::try_from(self.pids_in(core)?.len()).unwrap_or(u32::MAX),
        };
        Ok(usage)
    }

    /// Kills what is left in it and removes it from every hierarchy. Does nothing if it is not there.
    pub fn remove(&self) -> Result<(), CgroupError> {
        let deadline = Instant::now() + REMOVE_DEADLINE;
        for node in &self.tree.nodes {
            let removed = self.wait_for(deadline, || match self.remove_from(node) {
                Ok(()) => Ok(Some(Ok(()))),
                Err(Errno::BUSY) if Instant::now() < deadline => {
                    self.kill()?;
                    Ok(None)
                }
                Err(errno) => Ok(Some(Err(errno))),
            })?;
            if let Some(Err(errno)) = removed {
                return Err(CgroupError::Remove { path: node.path.join(&*self.name), source: errno.into() });
            }
        }
        Ok(())
    }

    pub(super) fn remove_directories_at_once(&self) {
        for node in &self.tree.nodes {
            // Best effort on the way out of a failed create: what stays is removed by `remove` later.
            let _ = self.remove_from(node);
        }
    }

    fn remove_from(&self, node: &Node) -> Result<(), Errno> {
        remove_directory(&node.directory, &self.name)
    }

    fn set_frozen(&self, frozen: bool) -> Result<bool, CgroupError> {
        let core = self.tree.core();
        if core.hierarchy.v2 {
            self.write(core, "cgroup.freeze", if frozen { "1" } else { "0" })?;
        } else {
            self.write(core, "freezer.state", if frozen { "FROZEN" } else { "THAWED" })?;
        }
        self.wait_until(Instant::now() + FREEZE_DEADLINE, || Ok(self.is_frozen()? == frozen))
    }

    fn kill_while_frozen(&self, core: &Node) -> Result<(), CgroupError> {
        // If something does not stop in time, killing goes on all the same, in rounds until the group is empty.
        match self.set_frozen(true) {
            // The part that freezes is gone already, or was never made.
            Err(error) if error.is_not_found() => return Ok(()),
            frozen => frozen?,
        };
        self.kill_in(core)?;
        self.thaw()
    }

    fn kill_in(&self, node: &Node) -> Result<(), CgroupError> {
        for pid in self.pids_in(node)? {
            // Gone already is as good as killed.
            let _ = kill_process(pid, Signal::KILL);
        }
        Ok(())
    }

    fn pids_in(&self, node: &Node) -> Result<Vec<Pid>, CgroupError> {
        match self.read(node, "cgroup.procs") {
            Ok(text) => Ok(text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect()),
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn event(&self, key: &str) -> Result<bool, CgroupError> {
        match self.read(self.tree.core(), "cgroup.events") {
            Ok(text) => Ok(files::value(&text, key) == Some(1)),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn wait_until(&self, deadline: Instant, mut done: impl FnMut() -> Result<bool, CgroupError>) -> Result<bool, CgroupError> {
        Ok(self.wait_for(deadline, || Ok(done()?.then_some(())))?.is_some())
    }

    /// Looks again whenever the kernel tells of a change (v2), or in short steps (v1, which cannot tell).
    fn wait_for<T>(&self, deadline: Instant, mut look: impl FnMut() -> Result<Option<T>, CgroupError>) -> Result<Option<T>, CgroupError> {
        let mut events = None;
        let mut pause = FIRST_PAUSE;
        loop {
            // Reading arms the file: only what changes after it ends the next wait, so it comes before the look.
            if let Some(Some(file)) = &events {
                let _ = rustix::io::pread(file, &mut [0u8; 64], 0);
            }
            if let Some(found) = look()? {
                return Ok(Some(found));
            }
            let now = Instant::now();
            if now >= deadline {
                return Ok(None);
            }
            match &events {
                None => events = Some(self.events().unwrap_or(None)),
                Some(Some(file)) => self.wait_for_event(file, deadline - now)?,
                Some(None) => {
                    std::thread::sleep(pause.min(deadline - now));
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    fn wait_for_event(&self, file: &OwnedFd, at_most: Duration) -> Result<(), CgroupError> {
        // A removal or a partial attach raises no event here, hence the bound on one wait.
        let bounded = at_most.min(Duration::from_millis(20));
        let timeout = Timespec { tv_sec: 0, tv_nsec: bounded.subsec_nanos().into() };
        match poll(&mut [PollFd::new(file, PollFlags::PRI)], Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(CgroupError::Wait { path: self.path(), source: errno.into() }),
        }
    }

    fn read(&self, node: &Node, file: &'static str) -> Result<String, CgroupError> {
        files::read(&node.directory, &format!("{}/{file}", self.name)).map_err(|source| CgroupError::Read {
            path: node.path.join(&*self.name),
            file,
            source,
        })
    }

    fn number(&self, node: &Node, file: &'static str) -> Result<u64, CgroupError> {
        let text = self.read(node, file)?;
        text.trim().parse().map_err(|_| CgroupError::Read {
            path: node.path.join(&*self.name),
            file,
            source: io::Error::new(io::ErrorKind::InvalidData, "not a number"),
        })
    }

    pub(super) fn write(&self, node: &Node, file: &'static str, text: &str) -> Result<(), CgroupError> {
        files::write(&node.directory, &format!("{}/{file}", self.name), text).map_err(|source| CgroupError::Write {
            path: node.path.join(&*self.name),
            file,
            source,
        })
    }

    /// `false` if the kernel has no such file.
    pub(super) fn write_if_there(&self, node: &Node, file: &'static str, text: &str) -> Result<bool, CgroupError> {
        match self.write(node, file, text) {
            Ok(()) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl CgroupError {
    fn is_not_found(&self) -> bool {
        match self {
            // ENODEV: the group was removed while its file was open.
            Self::Read { source, .. } | Self::Write { source, .. } => {
                source.kind() == io::ErrorKind::NotFound || source.raw_os_error() == Some(libc::ENODEV)
            }
            _ => false,
        }
    }
}

/// Removes a group's directory and the groups below it.
fn remove_directory(parent: &OwnedFd, name: &str) -> Result<(), Errno> {
    match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::BUSY) => {}
        Err(errno) => return Err(errno),
    }
    if let Ok(directory) = files::open_directory(parent, name) {
        for child in files::child_directories(&directory).unwrap_or_default() {
            remove_directory(&directory, &child)?;
        }
    }
    match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}
