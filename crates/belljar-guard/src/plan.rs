//! From what was asked for to what will be done: everything that can be refused is refused here, before any process exists.

use std::ffi::OsString;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use belljar_linux::guarded::{copy_whole_tree, map_owners_of_tree};
use belljar_linux::idmap;
use rustix::fs::{FileType, Mode, OFlags};

use crate::errors::GuardError;
use crate::limits::{Enforced, Limits};
use crate::protect::{self, Protected};
use crate::{environment, places, template};

/// Whether the command has a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Its own, with nothing on it but itself.
    None,
    /// The host's, all of it.
    Host,
}

/// What was asked for.
#[derive(Debug)]
pub struct Request {
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// A template for the root, instead of this machine's own programs.
    pub template: Option<String>,
    /// Where the server keeps templates.
    pub data_dir: PathBuf,
    /// Whether the current directory can be written.
    pub writable: bool,
    /// The network.
    pub network: Network,
    /// Further paths to show, read-only.
    pub shown: Vec<PathBuf>,
    /// Further variables: `NAME` or `NAME=VALUE`.
    pub environment: Vec<OsString>,
    /// Paths below the current directory whose protection is lifted.
    pub allowed: Vec<PathBuf>,
    /// Limits.
    pub limits: Limits,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// Whether to tell what is shown and what is not.
    pub verbose: bool,
}

/// Who the command is on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    /// The caller is root: the command is somebody whom no file of the host belongs to, and who is called root inside.
    Stranger,
    /// The caller itself, with these ids.
    Caller { uid: u32, gid: u32 },
}

/// On the host nobody is called that, and no range of a sandbox reaches it.
pub(crate) const STRANGER: u32 = 0x6262_0000;
pub(crate) const IDS: u32 = 65_536;

/// A path of the host and how it is shown.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) path: PathBuf,
    /// Where it is seen: at its own path, and at the one that was given if that leads there by a link.
    pub(crate) at: Vec<PathBuf>,
    pub(crate) writable: bool,
    pub(crate) is_directory: bool,
    /// Which file it is, so that it is noticed if another takes its place.
    pub(crate) file: (u64, u64),
    /// Made beforehand where root's files are shown as the stranger's.
    pub(crate) mounts: Vec<OwnedFd>,
}

/// Everything the guard and the first process need.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) command: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) cwd: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) identity: Identity,
    pub(crate) network: Network,
    /// The current directory first.
    pub(crate) shown: Vec<Shown>,
    pub(crate) protected: Protected,
    pub(crate) template_root: Option<OwnedFd>,
    pub(crate) enforced: Enforced,
    pub(crate) scratch_bytes: u64,
    pub(crate) timeout: Option<Duration>,
    pub(crate) verbose: bool,
}

impl Plan {
    pub(crate) fn new(request: Request) -> Result<Self, GuardError> {
        refuse_directories_as_streams()?;
        let identity = identity();
        let cwd = std::env::current_dir().map_err(GuardError::CurrentDirectory)?;
        let caller_home = places::home();
        let users = match identity {
            Identity::Stranger => Some(idmap::user_namespace(STRANGER, IDS).map_err(namespaces)?),
            Identity::Caller { .. } => None,
        };
        let mut shown = vec![show(&cwd, request.writable, caller_home.as_deref(), users.as_ref())?];
        for path in &request.shown {
            shown.push(show(path, false, caller_home.as_deref(), users.as_ref())?);
        }
        let allowed = request.allowed.iter().map(|path| below(&cwd, path)).collect::<Result<Vec<_>, _>>()?;
        let protected = protect::scan(&cwd, request.writable, &allowed)?;
        let mut environment = environment::reduce(std::env::vars_os(), &request.environment)?;
        let mut home = places::home_inside();
        let mut template_root = None;
        if let Some(name) = &request.template {
            let template = template::open(name, &request.data_dir, users.as_ref())?;
            home = template::adjust(&template, &mut environment, &request.environment)?;
            template_root = Some(template.root);
        }
        set(&mut environment, "HOME", home.clone().into());
        set(&mut environment, "PWD", cwd.clone().into());
        let enforced = Enforced::new(&request.limits, identity == Identity::Stranger)?;
        let scratch_bytes = request.limits.memory_bytes.unwrap_or_else(|| u64::try_from(memory_of_host() / 2).unwrap_or(1 << 30));
        Ok(Self {
            command: request.command,
            environment,
            cwd,
            home,
            identity,
            network: request.network,
            shown,
            protected,
            template_root,
            enforced,
            scratch_bytes,
            timeout: request.timeout,
            verbose: request.verbose,
        })
    }
}

fn namespaces(source: std::io::Error) -> GuardError {
    GuardError::Namespaces { advice: crate::userns::advice(&source), source }
}

fn memory_of_host() -> u128 {
    let info = rustix::system::sysinfo();
    u128::from(info.totalram) * u128::from(info.mem_unit.max(1))
}

pub(crate) fn set(environment: &mut Vec<(OsString, OsString)>, name: &str, value: OsString) {
    environment.retain(|(known, _)| known != name);
    environment.push((name.into(), value));
}

/// Root counts as root only where it rules over all ids: in a container's own user namespace it is an ordinary user.
fn identity() -> Identity {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let rules_over_all = map.split_whitespace().eq(["0", "0", "4294967295"]);
    if uid == 0 && rules_over_all { Identity::Stranger } else { Identity::Caller { uid, gid } }
}

fn refuse_directories_as_streams() -> Result<(), GuardError> {
    let streams = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    for (number, stream) in (0..).zip(streams) {
        if rustix::fs::fstat(stream).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory) {
            return Err(GuardError::StreamIsDirectory { number });
        }
    }
    Ok(())
}

fn show(given: &Path, writable: bool, home: Option<&Path>, users: Option<&OwnedFd>) -> Result<Shown, GuardError> {
    let failed = |source: std::io::Error| GuardError::Open { path: given.to_owned(), source };
    let path = given.canonicalize().map_err(failed)?;
    places::check(&path, home)?;
    let open = rustix::fs::open(&path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).map_err(|e| failed(e.into()))?;
    let stat = rustix::fs::fstat(&open).map_err(|e| failed(e.into()))?;
    let mut at = vec![path.clone()];
    let as_given = std::path::absolute(given).map_err(failed)?;
    let is_plain = !as_given.components().any(|part| part == std::path::Component::ParentDir);
    if is_plain && as_given != path && places::check(&as_given, home).is_ok() {
        at.push(as_given);
    }
    let mut mounts = Vec::new();
    if let Some(users) = users {
        for _ in &at {
            let mount = copy_whole_tree(open.as_fd()).map_err(failed)?;
            match map_owners_of_tree(mount.as_fd(), users.as_fd()) {
                Err(source) if writable => return Err(GuardError::MapOwners { path, source }),
                // Unmapped, the stranger sees what everybody may see: less, and never more.
                _ => mounts.push(mount),
            }
        }
    }
    let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    Ok(Shown { path, at, writable, is_directory, file: (stat.st_dev, stat.st_ino), mounts })
}

fn below(cwd: &Path, path: &Path) -> Result<PathBuf, GuardError> {
    let relative = if path.is_absolute() { path.strip_prefix(cwd).ok() } else { Some(path) };
    let plain = |part: std::path::Component<'_>| matches!(part, std::path::Component::Normal(_));
    let relative: Option<PathBuf> = relative.map(|path| path.components().filter(|part| *part != std::path::Component::CurDir).collect());
    relative.filter(|path| !path.as_os_str().is_empty() && path.components().all(plain)).ok_or_else(|| GuardError::Invalid {
        option: "--allow",
        value: path.display().to_string(),
        expected: "expected a path below the current directory",
    })
}
