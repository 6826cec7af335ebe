//! Starting `runsc` for one sandbox: its root, the view of the host it is given, its flags, and what it said if it failed.
//!
//! Everything is mounted in a mount namespace that nobody else is in. The child is born in the sandbox's control group, so that not even
//! its first page is counted elsewhere.

use std::ffi::{CString, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use belljar_host::ShownVolume;
use belljar_linux::cgroup::Membership;
use belljar_linux::child::{ChildPlan, spawn_in};
use belljar_linux::mount::{Overlay, Restrictions, copy_tree, restrict};
use belljar_linux::resolve;
use belljar_linux::shim::in_private_mounts;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{MountFlags, MoveMountFlags, mount, mount_bind, move_mount};
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::errors::EngineError;
use crate::runsc::Runsc;

/// The container's name within its own state directory; short because it is part of a socket's path.
pub(crate) const CONTAINER: &str = "box";
/// The longest path of a socket, its terminating NUL included.
const SOCKET_PATH_MAX: usize = 108;
/// How much of the end of a log is shown.
const LOG_SHOWN: u64 = 2048;

/// Where the engine keeps what belongs to one sandbox.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    /// The directory with `config.json`.
    pub(crate) bundle: PathBuf,
    /// Where the root is mounted, in the private mount namespace only.
    pub(crate) root: PathBuf,
    /// Where volumes are mounted, in the private mount namespace only, each at its number.
    pub(crate) volumes: PathBuf,
    /// runsc's own state.
    pub(crate) state: PathBuf,
    /// What runsc wrote down there about the sandbox.
    pub(crate) told: PathBuf,
    /// The sentry's process number.
    pub(crate) pid: PathBuf,
    /// What runsc says. The sandbox can make the sentry write to it, so it lies where the sandbox's disk limit counts it.
    pub(crate) log: PathBuf,
}

impl Files {
    /// In the sandbox's home, and on its disk.
    pub(crate) fn new(home: &Path, disk: &Path) -> Self {
        Self {
            bundle: home.to_owned(),
            root: home.join("root"),
            volumes: home.join("volumes"),
            state: home.join("runsc"),
            told: home.join("runsc").join(format!("{CONTAINER}_sandbox:{CONTAINER}.state")),
            pid: home.join("sentry.pid"),
            log: disk.join("runsc.log"),
        }
    }

    /// runsc falls back to a shared directory when its socket's path is too long, and nobody would find it there again.
    pub(crate) fn check_socket_path(&self) -> Result<(), EngineError> {
        let socket = self.state.join(format!("runsc-{CONTAINER}.sock"));
        if socket.as_os_str().len() < SOCKET_PATH_MAX { Ok(()) } else { Err(EngineError::LongPath { path: socket }) }
    }

    /// Makes the mount point, and removes what an earlier run left: runsc would take that sandbox for one that is there.
    fn make_ready(&self) -> Result<(), EngineError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| EngineError::Write { path, source }
        };
        match fs::create_dir(&self.root) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(&self.root)(error)),
            _ => {}
        }
        for (path, removed) in [(&self.state, fs::remove_dir_all(&self.state)), (&self.pid, fs::remove_file(&self.pid))] {
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(path)(error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Where each volume is to be found by runsc.
    pub(crate) fn places_for(&self, volumes: &[ShownVolume]) -> Vec<(PathBuf, ShownVolume)> {
        volumes.iter().enumerate().map(|(number, volume)| (self.volumes.join(number.to_string()), volume.clone())).collect()
    }

    /// The last things runsc said, made safe to print.
    pub(crate) fn last_words(&self) -> String {
        last_words(&self.log).unwrap_or_else(|_| "nothing".to_owned())
    }
}

/// Everything a start needs.
pub(crate) struct Launch<'a> {
    pub(crate) runsc: &'a Runsc,
    pub(crate) files: &'a Files,
    /// Read-only layers, lowest first.
    pub(crate) layers: &'a [PathBuf],
    /// The directory with `upper` and `work`.
    pub(crate) disk: &'a Path,
    /// The control group to start in.
    pub(crate) cgroup: &'a Membership,
    pub(crate) memory_bytes: u64,
    pub(crate) direct_files: bool,
    /// Memory to go on from.
    pub(crate) image: Option<&'a Path>,
    /// Volumes, each with its place ([`Files::places_for`]).
    pub(crate) volumes: &'a [(PathBuf, ShownVolume)],
}

impl Launch<'_> {
    /// Starts runsc, which returns when the agent's program runs in the new sandbox, or what was kept in memory goes on. `config.json` must be there.
    pub(crate) fn run(&self) -> Result<(), EngineError> {
        let Files { bundle, pid, .. } = self.files;
        self.files.make_ready()?;
        let start = |source| EngineError::Start { runsc: self.runsc.path.clone(), source };
        let mut words = vec![self.runsc.path.clone().into_os_string()];
        words.extend(self.runsc.flags(self.files, self.direct_files));
        match self.image {
            Some(image) => words.extend(["restore".into(), "--image-path".into(), image.into()]),
            None => words.push("run".into()),
        }
        words.extend(["--detach".into(), "--bundle".into(), bundle.into(), "--pid-file".into(), pid.into(), CONTAINER.into()]);
        let words = words.into_iter().map(|word| CString::new(word.into_vec()).map_err(io::Error::from));
        let words = words.collect::<io::Result<Vec<_>>>().map_err(start)?;

        let spawned = in_private_mounts(|| Ok(self.spawn(words))).map_err(start)?;
        let status = wait(spawned?).map_err(start)?;
        if status.success() {
            return Ok(());
        }
        Err(EngineError::Failed { runsc: self.runsc.path.clone(), status: status.to_string(), said: self.files.last_words() })
    }

    /// Runs in the private mount namespace. Layers are opened there: an overlay takes none that belong to another namespace.
    fn spawn(&self, words: Vec<CString>) -> Result<u32, EngineError> {
        let at_root = |source| EngineError::Root { path: self.files.root.clone(), source };
        let lower = self.layers.iter().map(|path| open_layer(path)).collect::<Result<Vec<_>, _>>()?;
        let disk = open_layer(self.disk)?;
        let lower: Vec<_> = lower.iter().map(AsFd::as_fd).collect();
        let overlay = Overlay { lower: &lower, writable: disk.as_fd(), root_id: 0 };
        let overlay = overlay.mount(Restrictions::NO_SETUID.and(Restrictions::NO_DEVICES)).map_err(at_root)?;
        for (place, volume) in self.volumes {
            self.show(volume, place, &overlay)?;
        }
        move_mount(&overlay, "", CWD, &self.files.root, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH).map_err(|errno| at_root(errno.into()))?;
        disguise_host(self.runsc, Some(self.memory_bytes)).map_err(at_root)?;

        let start = |source| EngineError::Start { runsc: self.runsc.path.clone(), source };
        let null = fs::OpenOptions::new().read(true).write(true).open("/dev/null").map_err(start)?;
        let plan = ChildPlan {
            programs: words.first().cloned().into_iter().collect(),
            argv: words,
            env: Vec::new(),
            cwd: c"/".to_owned(),
            user: None,
            stdio: [null.as_fd(); 3],
            controlling_terminal: false,
            reset_oom_score: false,
        };
        spawn_in(self.cgroup, &plan).map_err(|error| start(error.source))
    }
}

impl Launch<'_> {
    /// Puts a volume where runsc finds it, with restrictions that nothing behind it can lift, and makes the directory for it in the root: without
    /// following a link, since what is in there is the sandbox's.
    fn show(&self, volume: &ShownVolume, place: &Path, root: &OwnedFd) -> Result<(), EngineError> {
        let failed = |source| EngineError::Volume { path: volume.at.clone(), source };
        let show = || {
            resolve::make_directories_beneath(root, volume.at.beneath_root(), Mode::from_raw_mode(0o755))?;
            let mounted = copy_tree(&volume.source)?;
            let quiet = Restrictions::NO_SETUID.and(Restrictions::NO_DEVICES);
            restrict(mounted.as_fd(), if volume.read_only { quiet.and(Restrictions::READ_ONLY) } else { quiet })?;
            fs::create_dir_all(place)?;
            Ok(move_mount(&mounted, "", CWD, place, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
        };
        show().map_err(failed)
    }
}

/// Waits for a child and takes its ending.
fn wait(pid: u32) -> io::Result<ExitStatus> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    let ended = rustix::io::retry_on_intr(|| waitpid(Some(pid), WaitOptions::empty()))?;
    ended.map(|(_, status)| ExitStatus::from_raw(status.as_raw())).ok_or_else(|| io::ErrorKind::NotFound.into())
}

impl Runsc {
    /// The flags that all of a sandbox's commands share.
    pub(crate) fn flags(&self, files: &Files, direct_files: bool) -> Vec<OsString> {
        let mut flags: Vec<OsString> = vec!["--root".into(), (&files.state).into(), "--log".into(), (&files.log).into()];
        flags.extend(["--log-format=json", "--platform=systrap"].map(OsString::from));
        flags.extend(["--network=sandbox", "--net-disconnect-ok", "--net-raw=false"].map(OsString::from));
        // Limits are ours: see `Launch::cgroup`. The overlay is ours: layers, disk limit and snapshots are shared with other classes.
        flags.extend(["--ignore-cgroups", "--overlay2=none"].map(OsString::from));
        flags.extend(["--file-access=exclusive", "--host-uds=none", "--host-fifo=none"].map(OsString::from));
        flags.push(format!("--directfs={direct_files}").into());
        flags
    }
}

/// Changes what runsc sees of the host, in the calling thread's own mount namespace: the sandbox's memory limit as the machine's memory,
/// and for versions that need it, no sign of the host's network namespace (peculiarity (a) of the crate's documentation).
pub(crate) fn disguise_host(runsc: &Runsc, memory_bytes: Option<u64>) -> io::Result<()> {
    const LAST_CAPABILITY: &str = "/proc/sys/kernel/cap_last_cap";
    const LEAST_ADDRESS: &str = "/proc/sys/vm/mmap_min_addr";
    const MEMORY: &str = "/proc/meminfo";
    let scratch = if runsc.mistakes_namespaces() { "/proc/sys" } else { "/proc/tty" };
    let (last_capability, least_address) = (fs::read(LAST_CAPABILITY)?, fs::read(LEAST_ADDRESS)?);
    mount("none", scratch, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, Some(c"size=64k,mode=755"))?;
    if runsc.mistakes_namespaces() {
        for directory in ["/proc/sys/kernel", "/proc/sys/vm", "/proc/sys/net", "/proc/sys/net/core"] {
            fs::create_dir(directory)?;
        }
        fs::write(LAST_CAPABILITY, last_capability)?;
        fs::write(LEAST_ADDRESS, least_address)?;
    }
    if let Some(bytes) = memory_bytes {
        let disguise = Path::new(scratch).join("meminfo");
        fs::write(&disguise, format!("MemTotal: {} kB\n", bytes / 1024))?;
        mount_bind(&disguise, MEMORY)?;
    }
    Ok(())
}

fn open_layer(path: &Path) -> Result<OwnedFd, EngineError> {
    let opened = rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty());
    opened.map_err(|errno| EngineError::Layer { path: path.to_owned(), source: errno.into() })
}

fn last_words(log: &Path) -> io::Result<String> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_SHOWN)))?;
    let mut bytes = Vec::new();
    file.take(LOG_SHOWN).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let said: Vec<_> = text.lines().filter_map(message).map(|line| belljar_types::escape_untrusted(line.as_bytes())).collect();
    Ok(if said.is_empty() { "nothing".to_owned() } else { said.join("; ") })
}

/// The message in a line of the log if it tells of a failure, or the line if it is not as expected.
fn message(line: &str) -> Option<String> {
    match serde_json::from_str::<serde_json::Value>(line) {
        Ok(entry) if entry["level"] == "warning" || entry["level"] == "info" => None,
        Ok(entry) => Some(entry["msg"].as_str().unwrap_or(line).to_owned()),
        Err(_) => Some(line.to_owned()).filter(|line| !line.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_shown_by_its_messages_and_made_safe() {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::new(directory.path(), directory.path());
        assert_eq!(files.last_words(), "nothing");
        fs::write(
            &files.log,
            "{\"msg\":\"odd\",\"level\":\"warning\"}\n{\"msg\":\"cannot \\u001b[31mstart\",\"level\":\"error\"}\nplain\x07\n",
        )
        .unwrap();
        assert_eq!(files.last_words(), "cannot \\u{1b}[31mstart; plain\\u{7}");
        fs::write(&files.log, "x".repeat(1 << 20)).unwrap();
        assert!(files.last_words().len() <= 2048);
    }

    #[test]
    fn a_path_that_would_put_the_socket_elsewhere_is_refused() {
        let long = PathBuf::from(format!("/{}", "d".repeat(90)));
        assert!(matches!(Files::new(&long, &long).check_socket_path(), Err(EngineError::LongPath { .. })));
        assert!(Files::new(Path::new("/var/lib/belljar/sandboxes/s234567890123456789z"), &long).check_socket_path().is_ok());
    }

    #[test]
    fn the_disguise_is_worn_by_nobody_else() {
        let runsc = |date| Runsc { path: "/x".into(), version: String::new(), date };
        let (old, new) = (runsc(20240729), runsc(20990101));
        let seen = |runsc: Runsc| {
            in_private_mounts(move || {
                disguise_host(&runsc, Some(64 << 20))?;
                Ok((fs::read_to_string("/proc/meminfo")?, Path::new("/proc/sys/net/core/rmem_default").exists()))
            })
        };
        assert_eq!(seen(old).unwrap(), ("MemTotal: 65536 kB\n".to_owned(), false));
        assert_eq!(seen(new).unwrap(), ("MemTotal: 65536 kB\n".to_owned(), true));
        assert!(!fs::read_to_string("/proc/meminfo").unwrap().starts_with("MemTotal: 65536 kB"));
        assert!(Path::new("/proc/sys/kernel/pid_max").exists());
    }
}
