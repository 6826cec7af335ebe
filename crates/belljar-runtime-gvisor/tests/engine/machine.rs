//! A host with a small root filesystem of its own, made from programs of this machine, so that these tests need no template.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use belljar_host::{Host, HostConfig, HostError};
use belljar_ports::{Guest, Runtime};
use belljar_runtime_gvisor::{GvisorConfig, GvisorRuntime};
use belljar_types::{
    ExitStatus, IsolationClass, LayerDigest, OutputEvent, ProcessSpec, SandboxId, SandboxSpec, StreamKind, Termination, chain,
};
use futures_util::StreamExt;

const PROGRAMS: [&str; 17] =
    ["sh", "bash", "cat", "id", "sleep", "echo", "ls", "stty", "dd", "true", "head", "kill", "touch", "seq", "date", "nproc", "unshare"];

pub(crate) fn base_layer() -> LayerDigest {
    "b".repeat(64).parse().unwrap()
}

fn agent_layer() -> LayerDigest {
    "a".repeat(64).parse().unwrap()
}

/// One instance on a directory that goes away with it.
pub(crate) struct Machine {
    pub(crate) host: Arc<Host>,
    pub(crate) runtime: GvisorRuntime,
    pub(crate) data: PathBuf,
    directory: Option<tempfile::TempDir>,
}

impl Machine {
    /// A new instance with this many slots.
    pub(crate) async fn with_slots(slots: u32) -> Self {
        let directory = tempfile::Builder::new().prefix("bj-gv-").tempdir().unwrap();
        let mut machine = Self::once_free(directory.path(), slots).await;
        make_base_layer(&machine.host.layer_directory(&base_layer()));
        make_agent_layer(&machine.host.layer_directory(&agent_layer()));
        machine.directory = Some(directory);
        machine
    }

    /// The instance on a directory whose earlier owner is about to let go of it: its tasks end a moment after it was dropped.
    pub(crate) async fn once_free(data: &Path, slots: u32) -> Self {
        loop {
            match Self::at(data, slots).await {
                Ok(machine) => return machine,
                Err(HostError::Locked { .. }) => tokio::time::sleep(Duration::from_millis(5)).await,
                Err(error) => panic!("{}", chain(&error)),
            }
        }
    }

    async fn at(data: &Path, slots: u32) -> Result<Self, HostError> {
        let config = HostConfig {
            data_dir: data.to_owned(),
            pool_bytes: 2 << 30,
            agent_layer: Some(agent_layer()),
            closed_slots: slots,
            open_slots: 0,
            filtered_slots: 0,
            cgroup_root: None,
        };
        let host = Host::open(config).await?;
        let runtime = GvisorRuntime::new(host.clone(), GvisorConfig::default());
        Ok(Self { host, runtime, data: data.to_owned(), directory: None })
    }

    /// The directory in which the agent's program is.
    pub(crate) fn agent_directory(&self) -> PathBuf {
        self.host.layer_directory(&agent_layer()).join(".belljar")
    }

    /// Makes a sandbox with defaults.
    pub(crate) async fn create(&self) -> SandboxId {
        let spec = SandboxSpec::on(vec![base_layer()]);
        self.runtime.create(&spec).await.unwrap_or_else(|error| panic!("{}", chain(&error)));
        spec.id
    }

    /// Lets go of everything without cleaning up, as a process that ends does.
    pub(crate) fn abandon(mut self) -> tempfile::TempDir {
        self.directory.take().expect("only who made the directory can abandon it")
    }

    /// Gives everything back; fails if a test left a sandbox.
    pub(crate) async fn close(self) {
        self.host.settle().await;
        self.host.close().await.unwrap_or_else(|error| panic!("{}", chain(&error)));
    }

    /// Whether anything on the machine carries this sandbox's name.
    pub(crate) fn traces(&self, id: &SandboxId) -> Vec<String> {
        let mut traces = Vec::new();
        for path in [self.data.join("sandboxes").join(id.as_str()), self.data.join("pool/sandboxes").join(id.as_str())] {
            if path.exists() {
                traces.push(path.display().to_string());
            }
        }
        if self.host.cgroup(id).exists() {
            traces.push("cgroup".to_owned());
        }
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            if String::from_utf8_lossy(&line).contains(id.as_str()) {
                traces.push(format!("process {}", entry.path().display()));
            }
        }
        if fs::read_to_string("/proc/self/mountinfo").unwrap().contains(id.as_str()) {
            traces.push("mount".to_owned());
        }
        traces
    }
}

/// A test that failed leaves no sandbox behind.
impl Drop for Machine {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let host = self.host.clone();
            let swept = std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    for record in host.records(IsolationClass::Gvisor).await.unwrap() {
                        host.release(&record.id).await.unwrap();
                    }
                    host.settle().await;
                    host.close().await.unwrap();
                });
            });
            if swept.join().is_err() {
                eprintln!("what a failed test left at {} could not be removed", self.data.display());
            }
        }
    }
}

/// What a command did.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    pub(crate) fn code(&self) -> Option<i32> {
        match self.status.termination {
            Termination::Exited(code) => Some(code),
            Termination::Signaled(_) => None,
        }
    }
}

/// Runs a shell command in a sandbox to its end.
pub(crate) async fn shell(guest: &dyn Guest, script: &str) -> Done {
    run(guest, &ProcessSpec::new(["sh", "-c", script])).await
}

pub(crate) async fn run(guest: &dyn Guest, spec: &ProcessSpec) -> Done {
    let (_, mut output) = guest.start_attached(spec).await.unwrap_or_else(|error| panic!("{}", chain(&error)));
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    while let Some(event) = output.next().await {
        match event.unwrap_or_else(|error| panic!("{}", chain(&error))) {
            OutputEvent::Data { stream: StreamKind::Stdout, bytes, .. } => stdout.extend_from_slice(&bytes),
            OutputEvent::Data { stream: StreamKind::Stderr, bytes, .. } => stderr.extend_from_slice(&bytes),
            OutputEvent::Gap { from, to, .. } => panic!("lost bytes {from} to {to}"),
            OutputEvent::Exit(status) => {
                let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
                return Done { status, stdout: text(stdout), stderr: text(stderr) };
            }
        }
    }
    panic!("output ended without an exit")
}

fn make_base_layer(root: &Path) {
    for directory in ["bin", "usr/bin", "etc", "root", "home/user", "tmp", "proc", "sys", "dev", "run", "var/tmp"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    fs::set_permissions(root.join("tmp"), PermissionsExt::from_mode(0o1777)).unwrap();
    chown(root.join("home/user"), Some(1000), Some(1000)).unwrap();
    fs::write(root.join("etc/passwd"), "root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n").unwrap();
    fs::write(root.join("etc/group"), "root:x:0:\nuser:x:1000:\n").unwrap();
    let mut libraries = BTreeSet::new();
    for program in PROGRAMS {
        let found = ["/usr/bin", "/bin"].iter().map(|d| Path::new(d).join(program)).find(|p| p.exists()).unwrap();
        fs::copy(&found, root.join("bin").join(program)).unwrap();
        let listed = Command::new("ldd").arg(&found).output().unwrap();
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        libraries.extend(listed.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from));
    }
    for library in libraries {
        let target = root.join(library.strip_prefix("/").unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(&library, target).unwrap();
    }
}

fn make_agent_layer(root: &Path) {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guest/belljar-guest");
    let agent = std::env::var_os("BELLJAR_GUEST").map_or(built, PathBuf::from);
    assert!(agent.exists(), "these tests need the agent at {}: run `make guest`", agent.display());
    fs::create_dir_all(root.join(".belljar")).unwrap();
    fs::create_dir_all(root.join("usr/bin")).unwrap();
    fs::copy(agent, root.join(".belljar/guest")).unwrap();
    fs::set_permissions(root.join(".belljar/guest"), PermissionsExt::from_mode(0o755)).unwrap();
    symlink("/.belljar/guest", root.join("usr/bin/sudo")).unwrap();
}
