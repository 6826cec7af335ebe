//! A host with the container class, on a machine that has nothing but a kernel, a busybox and the agent.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use belljar_host::{Host, HostConfig};
use belljar_image::LayerStore;
use belljar_ports::{Guest, Runtime};
use belljar_runtime_container::{ContainerConfig, ContainerRuntime};
use belljar_testkit::{Census, Finished, Scope, run_spec};
use belljar_types::{LayerDigest, ProcessSpec, SandboxSpec};

use crate::promises::{Broken, Kept};

const BUSYBOX: &str = "/usr/bin/busybox";
const APPLETS: [&str; 10] = ["sh", "cat", "tail", "sleep", "stat", "id", "ls", "mv", "rm", "wc"];

pub(crate) struct Scene {
    pub(crate) runtime: ContainerRuntime,
    pub(crate) host: Arc<Host>,
    pub(crate) data_dir: PathBuf,
    base: LayerDigest,
    store: LayerStore,
    before: Census,
}

impl Scene {
    pub(crate) async fn set() -> Result<Self, Broken> {
        let data_dir = std::env::temp_dir().join(format!("container-trial-{}", std::process::id()));
        fs::create_dir(&data_dir)?;
        let config = HostConfig { pool_bytes: 1 << 30, closed_slots: 1, ..HostConfig::new(&data_dir) };
        let host = Host::open(config).await?;
        let store = LayerStore::open(host.pool_directory())?;
        let agent = std::env::var_os("BELLJAR_GUEST").ok_or("BELLJAR_GUEST does not say where the agent is")?;
        host.set_agent_layer(store.agent_layer(Path::new(&agent))?);
        let base = store.import_tree(&make_base(&data_dir)?, "a busybox")?.digest;
        let runtime = ContainerRuntime::new(Arc::clone(&host), ContainerConfig::default());
        host.settle().await;
        let before = Census::take(&scope(&host, &data_dir));
        Ok(Self { runtime, host, data_dir, base, store, before })
    }

    pub(crate) fn spec(&self) -> SandboxSpec {
        let mut spec = SandboxSpec::on(vec![self.base.clone()]);
        spec.limits.memory_bytes = 64 << 20;
        spec.limits.pids = 40;
        spec
    }

    /// Layers on top of each other, each with one file of its own and one that all have.
    pub(crate) fn pile(&self, layers: usize) -> Result<Vec<LayerDigest>, Broken> {
        let mut pile = vec![self.base.clone()];
        for number in 0..layers {
            let tree = self.data_dir.join(format!("layer-{number}"));
            fs::create_dir_all(tree.join("pile"))?;
            fs::write(tree.join(format!("pile/{number}")), "")?;
            fs::write(tree.join("top"), number.to_string())?;
            pile.push(self.store.import_tree(&tree, "one of a pile")?.digest);
        }
        Ok(pile)
    }

    /// Whatever is more than before the first sandbox. A user namespace stays open for each slot, and connections for a while.
    pub(crate) async fn count_remains(&self) -> Kept {
        self.host.settle().await;
        let tolerated = [("open files of this process", 16)];
        Census::settle(&self.before, &scope(&self.host, &self.data_dir), &tolerated).await.map_err(Into::into)
    }

    pub(crate) async fn strike(self) -> Kept {
        let Self { runtime, host, data_dir, store, .. } = self;
        drop((runtime, store));
        host.close().await?;
        let marks = [format!("belljar-{}", host.instance()), data_dir.to_string_lossy().into_owned()];
        drop(host);
        fs::remove_dir_all(&data_dir)?;
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        match mounts.lines().find(|line| marks.iter().any(|mark| line.contains(mark))) {
            Some(left) => Err(left.into()),
            None => Ok(()),
        }
    }
}

fn scope(host: &Host, data_dir: &Path) -> Scope {
    Scope { instance: host.instance().to_owned(), data_dir: data_dir.to_owned() }
}

fn make_base(data_dir: &Path) -> Result<PathBuf, Broken> {
    let root = data_dir.join("base");
    for directory in ["bin", "etc", "root", "tmp", "lower"] {
        fs::create_dir_all(root.join(directory))?;
    }
    fs::copy(BUSYBOX, root.join("bin/busybox"))?;
    fs::set_permissions(root.join("bin/busybox"), fs::Permissions::from_mode(0o755))?;
    for applet in APPLETS {
        symlink("busybox", root.join("bin").join(applet))?;
    }
    fs::write(root.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n")?;
    fs::write(root.join("etc/group"), "root:x:0:\n")?;
    fs::write(root.join("lower/file"), "lower\n")?;
    Ok(root)
}

/// Runs a script as root.
pub(crate) async fn sh(guest: &dyn Guest, script: &str) -> Result<Finished, Broken> {
    let mut spec = ProcessSpec::new(["/bin/sh", "-c", script]);
    spec.user = Some("root".parse()?);
    Ok(run_spec(guest, spec).await?)
}

/// Runs a script as root in a sandbox of its own, which is gone afterwards.
pub(crate) async fn sh_in(scene: &Scene, spec: &SandboxSpec, script: &str) -> Result<Finished, Broken> {
    scene.runtime.create(spec).await?;
    let finished = async { sh(&*scene.runtime.guest(&spec.id).await?, script).await }.await;
    scene.runtime.destroy(&spec.id).await?;
    finished
}
