//! One launch: from what the host reserved to a first process that runs the agent. Blocking; called off the async threads.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use belljar_host::{Origin, Reservation, renew_boot_files, write_boot_files};
use belljar_linux::caps::CapabilitySet;
use belljar_linux::launch::{Launch, Launched, launch};
use belljar_linux::rlimit::{ProcessLimit, Resource};
use belljar_linux::seccomp::{Policy, Program};
use belljar_linux::{idmap, landlock, mount};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::errors::ContainerError;
use crate::root::{self, Masks};

const AGENT: &CStr = c"/.belljar/guest";
/// At the door that the host opened: programs inside cannot reach it, and what is said there passes no network.
const ACCEPT: [&CStr; 2] = [c"--listen", c"stdin"];
const PATH: &CStr = c"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Nobody inside can go below it. The agent gets no better: what it may have, code inside could take too, and when the whole host
/// runs out of memory the kernel would kill its neighbours first.
const OOM_SCORE: &CStr = c"0";

const DESCRIPTORS: (u64, u64) = (65_536, 1 << 20);
/// User namespaces kept for slots to come, each a descriptor: about as many as are in stock or being cleaned at one time.
const NAMESPACES_KEPT: usize = 32;
const LOCKED_MEMORY: u64 = 8 << 20;
const MESSAGE_QUEUES: u64 = 819_200;

/// What all launches share.
#[derive(Debug)]
pub(crate) struct Starter {
    filter: Arc<Program>,
    masks: Masks,
    /// A slot's user ids never change, so neither does its namespace. Some are kept; which ones matters little.
    users: Mutex<HashMap<u32, Arc<OwnedFd>>>,
    mounts_from: OnceLock<Arc<OwnedFd>>,
}

/// A first process, and where its last words can be read.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) process: Launched,
    pub(crate) last_words: OwnedFd,
}

impl Starter {
    pub(crate) fn new() -> Self {
        let filter = Arc::new(Program::compile(&Policy::CONTAINER));
        Self { filter, masks: Masks::of_this_kernel(), users: Mutex::default(), mounts_from: OnceLock::new() }
    }

    /// Starts the agent of a reserved sandbox.
    pub(crate) fn start(&self, reservation: &Reservation) -> Result<Started, ContainerError> {
        let record = &reservation.record;
        let write = match reservation.origin {
            Origin::Blank => write_boot_files,
            Origin::Disk | Origin::Memory { .. } => renew_boot_files,
        };
        write(&reservation.upper, record, &reservation.slot).map_err(ContainerError::BootFiles)?;
        let hostname = record.spec.hostname.as_deref().unwrap_or(record.id.as_str());
        let (last_words, stderr) = last_words().map_err(|source| ContainerError::Prepare { what: "the agent's log", source })?;
        let door = reservation.open_door().map_err(|source| ContainerError::Prepare { what: "the agent's socket", source })?;
        let accept = door.iter().flat_map(|_| ACCEPT);
        let users = self.users(reservation.slot.uid_base, reservation.slot.uid_count)?;
        let root = root::assemble(reservation, &users)?;
        let plan = Launch {
            cgroup: reservation.cgroup.membership().map_err(ContainerError::Cgroup)?,
            network: open(&reservation.slot.netns)?,
            mounts_from: self.mounts_from()?,
            users,
            fence: landlock::fence(root.root.as_fd()).map_err(ContainerError::Fence)?,
            root: root.root,
            mounts: root.mounts,
            masked_files: self.masks.files.clone(),
            masked_directories: self.masks.directories.clone(),
            read_only: self.masks.read_only.clone(),
            hostname: CString::new(hostname).map_err(|error| ContainerError::Prepare { what: "the host name", source: error.into() })?,
            limits: limits().map_err(|source| ContainerError::Prepare { what: "the process limits", source })?,
            capabilities: CapabilitySet::ORDINARY_ROOT,
            filter: Arc::clone(&self.filter),
            oom_score: Some(OOM_SCORE.to_owned()),
            stderr,
            program: AGENT.to_owned(),
            arguments: std::iter::once(AGENT).chain(accept).map(ToOwned::to_owned).collect(),
            stdin: door,
            environment: vec![PATH.to_owned()],
        };
        let process = launch(&plan).map_err(ContainerError::Launch)?;
        Ok(Started { process, last_words })
    }

    fn mounts_from(&self) -> Result<Arc<OwnedFd>, ContainerError> {
        if let Some(known) = self.mounts_from.get() {
            return Ok(Arc::clone(known));
        }
        let made = mount::bare_namespace().map_err(|source| ContainerError::Prepare { what: "a bare mount namespace", source })?;
        Ok(Arc::clone(self.mounts_from.get_or_init(|| Arc::new(made))))
    }

    fn users(&self, base: u32, count: u32) -> Result<Arc<OwnedFd>, ContainerError> {
        let known = || self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(users) = known().get(&base) {
            return Ok(Arc::clone(users));
        }
        let made = idmap::user_namespace(base, count).map_err(|source| ContainerError::Users { base, source })?;
        let mut known = known();
        if known.len() >= NAMESPACES_KEPT
            && let Some(any) = known.keys().next().copied()
        {
            known.remove(&any);
        }
        Ok(Arc::clone(known.entry(base).or_insert(Arc::new(made))))
    }
}

/// A pipe that holds the agent's first words and drops the rest: nothing on the host grows with what a sandbox says.
fn last_words() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?)
}

fn limits() -> io::Result<Vec<ProcessLimit>> {
    Ok(vec![
        ProcessLimit::at_most(Resource::Core, 0, 0)?,
        ProcessLimit::at_most(Resource::Descriptors, DESCRIPTORS.0, DESCRIPTORS.1)?,
        ProcessLimit::at_most(Resource::LockedMemory, LOCKED_MEMORY, LOCKED_MEMORY)?,
        ProcessLimit::at_most(Resource::RealTimePriority, 0, 0)?,
        ProcessLimit::at_most(Resource::Nice, 0, 0)?,
        ProcessLimit::at_most(Resource::MessageQueues, MESSAGE_QUEUES, MESSAGE_QUEUES)?,
    ])
}

fn open(path: &Path) -> Result<OwnedFd, ContainerError> {
    File::open(path).map(OwnedFd::from).map_err(|source| ContainerError::Open { path: path.to_owned(), source })
}
