//! A host of its own for each test: a pool, slots and cgroups that carry its own tag, and layers made from the machine's programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use belljar_host::{Host, HostConfig};
use belljar_runtime_container::{ContainerConfig, ContainerRuntime};
use belljar_types::{LayerDigest, SandboxSpec};
use tokio::sync::{Mutex, MutexGuard};

const PROGRAMS: [&str; 16] =
    ["sh", "cat", "ls", "id", "grep", "stat", "touch", "mount", "unshare", "chown", "mkdir", "mv", "sleep", "dd", "head", "tail"];

pub(crate) struct World {
    pub(crate) runtime: ContainerRuntime,
    pub(crate) host: Arc<Host>,
    pub(crate) base: LayerDigest,
    agent: LayerDigest,
    // Last, in this order: the directory goes after the sweep, and then it is the next test's turn.
    sweep: Sweep,
    directory: tempfile::TempDir,
    turn: MutexGuard<'static, ()>,
}

/// One world at a time: a launch has copies of all descriptors of this process for a moment, and no pool can be unmounted meanwhile.
static TURN: Mutex<()> = Mutex::const_new(());

/// What becomes `/.belljar/guest`.
pub(crate) enum Agent<'a> {
    /// The real one.
    Real,
    /// A shell script.
    Script(&'a str),
}

impl World {
    pub(crate) async fn new(agent: Agent<'_>) -> Self {
        let turn = TURN.lock().await;
        let directory = tempfile::tempdir().unwrap();
        let (base, agent_layer) = (digest('b'), digest('a'));
        let host = open(directory.path(), &agent_layer).await;
        make_base(&host.layer_directory(&base));
        make_agent(&host.layer_directory(&agent_layer), &agent);
        let runtime = ContainerRuntime::new(Arc::clone(&host), ContainerConfig::default());
        let sweep = Sweep { directory: directory.path().to_owned(), instance: host.instance().to_owned() };
        Self { runtime, host, base, agent: agent_layer, sweep, directory, turn }
    }

    pub(crate) fn spec(&self) -> SandboxSpec {
        SandboxSpec::on(vec![self.base.clone()])
    }

    /// What a second server finds after the first one is gone without a word.
    pub(crate) async fn reopened(self) -> Self {
        let Self { runtime, host, base, agent, sweep, directory, turn } = self;
        drop(runtime);
        drop(host);
        let host = open(directory.path(), &agent).await;
        let runtime = ContainerRuntime::new(Arc::clone(&host), ContainerConfig::default());
        Self { runtime, host, base, agent, sweep, directory, turn }
    }

    pub(crate) async fn close(self) {
        self.host.close().await.unwrap();
    }
}

/// Takes away what a failed test left on the machine.
struct Sweep {
    directory: PathBuf,
    instance: String,
}

const SWEEP: &str = r#"
    for group in $(find /sys/fs/cgroup -depth -path "*/belljar-$1*" -type d); do
        [ ! -e "$group/cgroup.kill" ] || echo 1 > "$group/cgroup.kill"; sleep 0.05; rmdir "$group"
    done
    for namespace in /run/belljar-"$1"/netns/*; do umount -l "$namespace"; done
    umount -l /run/belljar-"$1"/netns; rm -rf /run/belljar-"$1"; umount -l "$2/pool"
"#;

impl Drop for Sweep {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = Command::new("sh").args(["-c", SWEEP, "sweep", &self.instance]).arg(&self.directory).status();
        }
    }
}

async fn open(data_dir: &Path, agent_layer: &LayerDigest) -> Arc<Host> {
    let config = HostConfig {
        data_dir: data_dir.to_owned(),
        pool_bytes: 1 << 30,
        agent_layer: Some(agent_layer.clone()),
        closed_slots: 2,
        open_slots: 0,
        filtered_slots: 0,
        cgroup_root: None,
    };
    Host::open(config).await.unwrap()
}

fn digest(letter: char) -> LayerDigest {
    letter.to_string().repeat(64).parse().unwrap()
}

fn make_base(root: &Path) {
    fs::create_dir_all(root).unwrap();
    for made in ["bin", "etc", "tmp", "home/user"] {
        fs::create_dir_all(root.join(made)).unwrap();
    }
    // A link where a mount point has to be: the sandbox must not follow it.
    std::os::unix::fs::symlink("/etc", root.join("proc")).unwrap();
    fs::write(root.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\n").unwrap();
    fs::write(root.join("etc/group"), "root:x:0:\nuser:x:1000:\n").unwrap();
    rustix::fs::chown(root.join("home/user"), Some(rustix::fs::Uid::from_raw(1000)), Some(rustix::fs::Gid::from_raw(1000))).unwrap();
    for program in PROGRAMS {
        let path = ["/bin", "/usr/bin"].map(|directory| Path::new(directory).join(program));
        let path = path.iter().find(|path| path.exists()).unwrap();
        fs::copy(path, root.join("bin").join(program)).unwrap();
        copy_libraries(path, root);
    }
}

fn copy_libraries(program: &Path, root: &Path) {
    let listed = Command::new("ldd").arg(program).output().unwrap();
    for word in String::from_utf8(listed.stdout).unwrap().split_whitespace().filter(|word| word.starts_with('/')) {
        let target = root.join(word.trim_start_matches('/'));
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(word, target).unwrap();
    }
}

fn make_agent(root: &Path, agent: &Agent<'_>) {
    let path = root.join(".belljar/guest");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    match agent {
        Agent::Script(script) => fs::write(&path, format!("#!/bin/sh\nexec 1>&2\n{script}\n")).unwrap(),
        Agent::Real => fs::copy(agent_binary(), &path).map(drop).unwrap(),
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn agent_binary() -> PathBuf {
    let built = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guest/belljar-guest");
    let path = std::env::var_os("BELLJAR_GUEST").map_or_else(built, PathBuf::from);
    assert!(path.exists(), "{} is not there: run `make guest`, or set BELLJAR_GUEST", path.display());
    path
}
