//! A small root filesystem from the host's own programs, and a launch of a shell in it that needs nothing but a kernel.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use belljar_linux::caps::CapabilitySet;
use belljar_linux::cgroup::Membership;
use belljar_linux::launch::{Attach, Launch, Launched};
use belljar_linux::mount::{self, Overlay, Restrictions};
use belljar_linux::pidfd::{self, Ending};
use belljar_linux::rlimit::{ProcessLimit, Resource};
use belljar_linux::seccomp::{Policy, Program};
use belljar_linux::{idmap, landlock};

pub(crate) const UID_BASE: u32 = 900_000_000;
const PROGRAMS: [&str; 13] = ["sh", "cat", "ls", "id", "grep", "stat", "touch", "mount", "unshare", "chown", "mkdir", "mv", "sleep"];

/// The read-only layer, made once for all tests of this process.
fn layer() -> &'static Path {
    static LAYER: OnceLock<tempfile::TempDir> = OnceLock::new();
    LAYER
        .get_or_init(|| {
            let directory = tempfile::tempdir().unwrap();
            let root = directory.path();
            fs::set_permissions(root, fs::Permissions::from_mode(0o755)).unwrap();
            for made in ["bin", "etc", "dev", "proc", "sys", "tmp", "lower-directory"] {
                fs::create_dir(root.join(made)).unwrap();
            }
            fs::write(root.join("lower-directory/file"), "lower\n").unwrap();
            for program in PROGRAMS {
                let path = ["/bin", "/usr/bin"].map(|directory| Path::new(directory).join(program));
                let path = path.iter().find(|path| path.exists()).unwrap();
                fs::copy(path, root.join("bin").join(program)).unwrap();
                copy_libraries(path, root);
            }
            directory
        })
        .path()
}

fn copy_libraries(program: &Path, root: &Path) {
    let listed = Command::new("ldd").arg(program).output().unwrap();
    for word in String::from_utf8(listed.stdout).unwrap().split_whitespace().filter(|word| word.starts_with('/')) {
        let target = root.join(word.trim_start_matches('/'));
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(word, target).unwrap();
    }
}

pub(crate) struct Fixture {
    pub(crate) writable: tempfile::TempDir,
    stderr: OwnedFd,
}

impl Fixture {
    /// A launch of `sh -c script`, to be changed by the test.
    pub(crate) fn new(script: &str) -> (Self, Launch) {
        let writable = tempfile::tempdir().unwrap();
        for made in ["upper", "work"] {
            fs::create_dir(writable.path().join(made)).unwrap();
        }
        fs::set_permissions(writable.path().join("upper"), fs::Permissions::from_mode(0o755)).unwrap();
        let users = Arc::new(idmap::user_namespace(UID_BASE, 65_536).unwrap());
        let layer = mapped(layer(), &users);
        let upper = mapped(writable.path(), &users);
        let root = Overlay { lower: &[layer.as_fd()], writable: upper.as_fd(), root_id: UID_BASE }.mount(Restrictions::NO_DEVICES).unwrap();
        let (stderr, stderr_writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let text = |text: &str| CString::new(text).unwrap();
        let fence = landlock::fence(root.as_fd()).unwrap();
        let launch = Launch {
            cgroup: Membership::default(),
            network: File::open("/proc/self/ns/net").unwrap().into(),
            mounts_from: Arc::new(mount::bare_namespace().unwrap()),
            users,
            fence,
            root,
            mounts: vec![Attach { mount: devices(), at: text("/dev") }],
            masked_files: ["/proc/keys", "/proc/kallsyms", "/proc/not-there"].map(text).to_vec(),
            masked_directories: ["/proc/acpi", "/proc/not-there-either"].map(text).to_vec(),
            read_only: ["/proc/sys", "/proc/irq", "/proc/not-there"].map(text).to_vec(),
            hostname: text("inside"),
            limits: vec![ProcessLimit::at_most(Resource::Descriptors, 512, 1024).unwrap()],
            capabilities: CapabilitySet::ORDINARY_ROOT,
            filter: Arc::new(Program::compile(&Policy::CONTAINER)),
            oom_score: Some(text("7")),
            stdin: None,
            stderr: stderr_writer,
            program: text("/bin/sh"),
            arguments: ["sh", "-c", &format!("exec 1>&2; {script}")].map(text).to_vec(),
            environment: vec![text("PATH=/bin")],
        };
        (Self { writable, stderr }, launch)
    }

    /// What it wrote, after its end. The launch must be gone, or its end of the pipe stays open.
    pub(crate) fn finish(self, launch: Launch, launched: &Launched) -> (Ending, String) {
        drop(launch);
        let mut text = String::new();
        File::from(self.stderr).read_to_string(&mut text).unwrap();
        let ending = loop {
            if let Some(ending) = pidfd::reap(launched.pidfd.as_fd()).unwrap() {
                break ending;
            }
            std::thread::yield_now();
        };
        (ending, text)
    }
}

fn mapped(path: &Path, users: &OwnedFd) -> OwnedFd {
    let mount = mount::copy_tree(path).unwrap();
    mount::map_owners(mount.as_fd(), users.as_fd(), Restrictions::NONE).unwrap();
    mount
}

fn devices() -> OwnedFd {
    let mount = mount::memory_filesystem(64 << 10, 32, 0o755, Restrictions::NO_SETUID).unwrap();
    let root = PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&mount)));
    fs::create_dir(root.join("pts")).unwrap();
    symlink("pts/ptmx", root.join("ptmx")).unwrap();
    let device = rustix::fs::makedev(1, 3);
    let mode = rustix::fs::Mode::from_raw_mode(0o666);
    rustix::fs::mknodat(&mount, "null", rustix::fs::FileType::CharacterDevice, mode, device).unwrap();
    rustix::fs::chmodat(&mount, "null", mode, rustix::fs::AtFlags::empty()).unwrap();
    chown(root.join("null"), Some(UID_BASE), Some(UID_BASE)).unwrap();
    mount
}
