//! The alternatives: `bwrap`, bare `runsc run`, and `crun` where it runs, each doing `/bin/true` on the same root filesystem.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Failure;

/// A program that runs `/bin/true` in isolation and ends.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    argv: Vec<String>,
}

impl Peer {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let output = Command::new(&self.argv[0]).args(&self.argv[1..]).stdin(Stdio::null()).output()?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("{} failed: {}", self.name, String::from_utf8_lossy(&output.stderr)).into())
    }
}

/// Those that work on this machine.
pub(crate) struct Peers {
    peers: Vec<Peer>,
    scratch: PathBuf,
}

impl Peers {
    pub(crate) fn find(rootfs: &Path) -> Result<Self, Failure> {
        let scratch = std::env::temp_dir().join(format!("belljar-bench-{}", std::process::id()));
        std::fs::create_dir_all(scratch.join("bundle"))?;
        std::fs::write(scratch.join("bundle/config.json"), serde_json::to_vec(&bundle(rootfs))?)?;
        let candidates = [bwrap(rootfs), runsc(&scratch), crun(&scratch)];
        let mut peers = Vec::new();
        for peer in candidates {
            match peer.run() {
                Ok(()) => peers.push(peer),
                Err(reason) => println!("left out: {reason}"),
            }
        }
        Ok(Self { peers, scratch })
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter()
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        // A benchmark that could not tidy up has still measured.
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

fn words(argv: &[&str]) -> Vec<String> {
    argv.iter().map(|&word| word.to_owned()).collect()
}

fn bwrap(rootfs: &Path) -> Peer {
    let rootfs = rootfs.display().to_string();
    Peer {
        name: "bwrap",
        argv: words(&["bwrap", "--unshare-all", "--ro-bind", &rootfs, "/", "--proc", "/proc", "--dev", "/dev", "/bin/true"]),
    }
}

/// Bare `runsc run` with the platform and the isolation Belljar uses, but no network of its own: the cheapest it can do.
fn runsc(scratch: &Path) -> Peer {
    let runsc = std::env::var("BELLJAR_RUNSC").unwrap_or_else(|_| "/usr/local/lib/belljar/runsc".to_owned());
    let script = format!(
        "exec {runsc} --root={0}/state --platform=systrap --network=none --ignore-cgroups --overlay2=none run --bundle {0}/bundle b$$",
        scratch.display()
    );
    Peer { name: "runsc", argv: words(&["/bin/sh", "-c", &script]) }
}

/// `crun` refuses hybrid cgroups, so it gets a mount namespace without the v2 tree and makes no cgroup.
fn crun(scratch: &Path) -> Peer {
    let script = format!(
        "umount /sys/fs/cgroup/unified 2>/dev/null; exec crun --root={0}/crun --cgroup-manager=disabled run --bundle {0}/bundle c$$",
        scratch.display()
    );
    Peer { name: "crun", argv: words(&["unshare", "-m", "/bin/sh", "-c", &script]) }
}

/// With a `/dev` of its own, as bundles have it: otherwise `crun` makes its devices in the layer, which is the template's.
fn bundle(rootfs: &Path) -> serde_json::Value {
    serde_json::json!({
        "ociVersion": "1.0.2",
        "root": { "path": rootfs, "readonly": true },
        "process": { "args": ["/bin/true"], "cwd": "/", "env": ["PATH=/usr/bin:/bin"], "user": { "uid": 0, "gid": 0 } },
        "mounts": [
            { "destination": "/proc", "type": "proc", "source": "proc" },
            { "destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"] },
            { "destination": "/tmp", "type": "tmpfs", "source": "tmpfs" }
        ],
        "linux": { "namespaces": [{ "type": "pid" }, { "type": "ipc" }, { "type": "uts" }, { "type": "mount" }, { "type": "network" }] }
    })
}
