//! Where a host keeps things. Everything of one instance carries a short tag made from its data directory, so that several
//! instances (a server, tests) live side by side on one machine without knowing of each other.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use belljar_types::{LayerDigest, SandboxId, SnapshotId, VolumeId};

/// What an operator decides about a host.
#[derive(Debug, Clone)]
pub struct HostConfig {
    /// Everything that lasts; owned by one process at a time.
    pub data_dir: PathBuf,
    /// Size of the pool that layers and sandboxes share; used when the pool is first made.
    pub pool_bytes: u64,
    /// The layer with the agent, put on top of every sandbox's own. Usually set by [`crate::Host::set_agent_layer`] once the pool is open,
    /// because the layer lies in it.
    pub agent_layer: Option<LayerDigest>,
    /// How many closed network slots to keep ready.
    pub closed_slots: u32,
    /// How many open ones; 0 leaves the machine's own network untouched and refuses open sandboxes.
    pub open_slots: u32,
    /// How many filtered ones; 0 asks nothing of the kernel for them and refuses filtered sandboxes.
    pub filtered_slots: u32,
    /// Where cgroups are mounted, if not where the machine says.
    pub cgroup_root: Option<PathBuf>,
}

impl HostConfig {
    /// A host on this directory, with defaults for the rest.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            pool_bytes: 64 << 30,
            agent_layer: None,
            closed_slots: 4,
            open_slots: 0,
            filtered_slots: 0,
            cgroup_root: None,
        }
    }
}

/// The directories and names of one instance.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    pub(crate) instance: String,
    pub(crate) lock: PathBuf,
    pub(crate) image: PathBuf,
    pub(crate) pool: PathBuf,
    pub(crate) layers: PathBuf,
    pub(crate) templates: PathBuf,
    pub(crate) staging: PathBuf,
    pub(crate) subvolumes: PathBuf,
    /// What snapshots hold.
    pub(crate) snapshots: PathBuf,
    /// What is kept of paused sandboxes beside their disks.
    pub(crate) paused: PathBuf,
    /// Storage that belongs to no sandbox.
    pub(crate) volumes: PathBuf,
    /// Which volumes are buckets.
    pub(crate) buckets: PathBuf,
    pub(crate) homes: PathBuf,
    /// What is written down about snapshots.
    pub(crate) snapshot_homes: PathBuf,
    pub(crate) run: PathBuf,
    pub(crate) netns: PathBuf,
}

impl Places {
    /// `data` must be absolute and free of symbolic links, or one directory would get two tags.
    pub(crate) fn new(data: &Path) -> Self {
        let instance = tag(data);
        let pool = data.join("pool");
        let run = run_directory(&instance);
        Self {
            lock: data.join("lock"),
            image: data.join("pool.img"),
            layers: pool.join("layers"),
            templates: pool.join("templates"),
            staging: pool.join("staging"),
            subvolumes: pool.join("sandboxes"),
            snapshots: pool.join("snapshots"),
            paused: pool.join("paused"),
            volumes: pool.join("volumes"),
            buckets: data.join("buckets"),
            snapshot_homes: data.join("snapshots"),
            homes: data.join("sandboxes"),
            netns: run.join("netns"),
            pool,
            run,
            instance,
        }
    }

    /// What cgroups and firewall tables of this instance are called.
    pub(crate) fn name(&self) -> String {
        format!("belljar-{}", self.instance)
    }

    pub(crate) fn home(&self, id: &SandboxId) -> PathBuf {
        self.homes.join(id.as_str())
    }

    pub(crate) fn subvolume(&self, id: &SandboxId) -> PathBuf {
        self.subvolumes.join(id.as_str())
    }

    /// A directory with a disk and, in `memory`, an image.
    pub(crate) fn snapshot(&self, id: &SnapshotId) -> PathBuf {
        self.snapshots.join(id.as_str())
    }

    pub(crate) fn snapshot_home(&self, id: &SnapshotId) -> PathBuf {
        self.snapshot_homes.join(id.as_str())
    }

    /// The same of a paused sandbox.
    pub(crate) fn capture(&self, id: &SandboxId, name: &str) -> PathBuf {
        self.paused.join(id.as_str()).join(name)
    }

    pub(crate) fn volume(&self, id: &VolumeId) -> PathBuf {
        self.volumes.join(id.as_str())
    }

    /// The directories that a pool has.
    pub(crate) fn of_the_pool(&self) -> [&Path; 7] {
        [&self.layers, &self.templates, &self.staging, &self.subvolumes, &self.snapshots, &self.paused, &self.volumes]
    }

    pub(crate) fn layer(&self, digest: &LayerDigest) -> PathBuf {
        self.layers.join(digest.as_str()).join("fs")
    }
}

/// Where an instance keeps what ends with the machine's uptime.
pub(crate) fn run_directory(instance: &str) -> PathBuf {
    PathBuf::from(format!("/run/belljar-{instance}"))
}

/// Six letters or digits: 30 bits of FNV-1a, short enough for an interface name.
fn tag(path: &Path) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let hash = path.as_os_str().as_bytes().iter().fold(OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
    (0..6).map(|place| char::from(ALPHABET[usize::try_from((hash >> (20 + place * 5)) & 31).unwrap_or(0)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_is_short_and_stays_the_same() {
        assert_eq!(tag(Path::new("/var/lib/belljar")), tag(Path::new("/var/lib/belljar")));
        assert_ne!(tag(Path::new("/var/lib/belljar")), tag(Path::new("/var/lib/belljar2")));
        assert_eq!(tag(Path::new("/")).len(), 6);
    }
}
