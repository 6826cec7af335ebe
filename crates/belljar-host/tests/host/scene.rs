//! A host in a directory of its own, and ways to look at what is on the machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use belljar_host::{Host, HostConfig};
use belljar_types::{LayerDigest, SandboxSpec};

pub(crate) struct Scene {
    pub(crate) host: Arc<Host>,
    pub(crate) directory: PathBuf,
    /// Last, so that the directory goes after the sweep.
    pub(crate) _sweep: Sweep,
    pub(crate) _temporary: Option<tempfile::TempDir>,
}

pub(crate) fn digest(letter: char) -> LayerDigest {
    letter.to_string().repeat(64).parse().unwrap()
}

pub(crate) fn config(directory: &Path) -> HostConfig {
    HostConfig {
        data_dir: directory.to_owned(),
        pool_bytes: 1 << 30,
        agent_layer: Some(digest('a')),
        closed_slots: 2,
        open_slots: 0,
        filtered_slots: 0,
        cgroup_root: None,
    }
}

pub(crate) fn make_layers(host: &Host) {
    for letter in ['a', 'b'] {
        std::fs::create_dir_all(host.layer_directory(&digest(letter))).unwrap();
    }
}

pub(crate) fn spec() -> SandboxSpec {
    SandboxSpec::on(vec![digest('b')])
}

impl Scene {
    pub(crate) async fn new() -> Self {
        Self::with(|_| ()).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut HostConfig)) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary.path().to_owned();
        let mut config = config(&directory);
        change(&mut config);
        let host = Host::open(config).await.unwrap();
        make_layers(&host);
        host.settle().await;
        let sweep = Sweep { directory: directory.clone(), instance: host.instance().to_owned() };
        Self { host, directory, _sweep: sweep, _temporary: Some(temporary) }
    }

    pub(crate) async fn counts(&self) -> BTreeMap<&'static str, usize> {
        self.host.settle().await;
        counts(&self.directory, self.host.instance(), self.host.gateway().netns_path())
    }

    pub(crate) async fn close(self) {
        let instance = self.host.instance().to_owned();
        self.host.close().await.unwrap();
        assert!(!Path::new(&format!("/run/belljar-{instance}")).exists());
        assert!(cgroups(&instance).is_empty(), "{:?}", cgroups(&instance));
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(self.directory.to_str().unwrap()), "{mounts}");
    }
}

/// Takes away what a failed test left on the machine.
pub(crate) struct Sweep {
    directory: PathBuf,
    instance: String,
}

impl Drop for Sweep {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for cgroup in cgroups(&self.instance).iter().rev() {
            let _ = std::fs::write(cgroup.join("cgroup.kill"), "1");
            let _ = std::fs::remove_dir(cgroup);
        }
        let _ = std::process::Command::new("sh")
            .args([
                "-c",
                "for n in \"$1\"/netns/*; do umount -l \"$n\"; done; umount -l \"$1/netns\"; rm -rf \"$1\"; umount -l \"$2/pool\"",
                "sweep",
            ])
            .args([&format!("/run/belljar-{}", self.instance), self.directory.to_str().unwrap()])
            .status();
    }
}

/// How many there are of everything an instance makes.
pub(crate) fn counts(directory: &Path, instance: &str, gateway: &Path) -> BTreeMap<&'static str, usize> {
    let entries = |path: PathBuf| std::fs::read_dir(path).map_or(0, Iterator::count);
    let links = belljar_linux::netns::Netns::open(gateway).unwrap().run(|| belljar_linux::netns::Links::open()?.list()).unwrap();
    let pool = std::fs::File::open(directory.join("pool")).unwrap();
    let filesystem = belljar_linux::btrfs::filesystem_id(&pool).unwrap();
    BTreeMap::from([
        ("homes", entries(directory.join("sandboxes"))),
        ("subvolumes", entries(directory.join("pool/sandboxes"))),
        ("staging", entries(directory.join("pool/staging"))),
        ("namespaces", entries(PathBuf::from(format!("/run/belljar-{instance}/netns")))),
        ("interfaces", links.len()),
        ("cgroups", cgroups(instance).len()),
        ("quotas", belljar_linux::btrfs::quota_records(&filesystem).unwrap().len()),
    ])
}

/// All cgroup directories of an instance, its own included.
pub(crate) fn cgroups(instance: &str) -> Vec<PathBuf> {
    fn below(path: &Path, found: &mut Vec<PathBuf>) {
        let Ok(entries) = std::fs::read_dir(path) else { return };
        found.push(path.to_owned());
        for entry in entries.flatten().filter(|entry| entry.path().is_dir()) {
            below(&entry.path(), found);
        }
    }
    let mut found = Vec::new();
    let name = format!("belljar-{instance}");
    below(&Path::new("/sys/fs/cgroup").join(&name), &mut found);
    for entry in std::fs::read_dir("/sys/fs/cgroup").unwrap().flatten() {
        below(&entry.path().join(&name), &mut found);
    }
    found
}
