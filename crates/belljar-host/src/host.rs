//! [`Host`]: the one owner of a data directory, and the way in to everything else here.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use belljar_linux::cgroup::Cgroup;
use belljar_types::{Check, IsolationClass, LayerDigest, MountPath, SandboxId, SandboxSpec, Usage};

use crate::config::HostConfig;
use crate::error::HostError;
use crate::gateway::Gateway;
use crate::inner::Inner;
use crate::record::{Identity, Record};
use crate::slot::Slot;
use crate::{records, spent};

/// Everything a sandbox has been given, before anything runs in it.
#[derive(Debug)]
pub struct Reservation {
    /// What was written down about it.
    pub record: Record,
    /// Its control group, empty, with its limits.
    pub cgroup: Cgroup,
    /// Its network.
    pub slot: Slot,
    /// The writable directory of its root.
    pub upper: PathBuf,
    /// Overlayfs's own directory beside it.
    pub work: PathBuf,
    /// Its directory on the host, for what its engine keeps.
    pub home: PathBuf,
    /// Directories of its root, lowest first, the agent's last.
    pub layers: Vec<PathBuf>,
    /// What it begins with.
    pub origin: Origin,
    /// Storage that outlives it.
    pub volumes: Vec<ShownVolume>,
}

/// A volume and where it is seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownVolume {
    /// Its directory on the host.
    pub source: PathBuf,
    /// The directory in the sandbox.
    pub at: MountPath,
    /// Whether it can only be read there.
    pub read_only: bool,
    /// Whether it is a bucket, in which a file is when it was closed.
    pub is_bucket: bool,
}

/// What a sandbox begins with.
#[derive(Debug, Clone)]
pub enum Origin {
    /// Nothing but its layers.
    Blank,
    /// A disk that was used before, by whoever ran there: nothing on it can be relied on.
    Disk,
    /// The same disk, and the memory of that moment.
    Memory {
        /// The directory with the engine's image.
        image: PathBuf,
        /// Whom the agent in it takes itself for.
        identity: Identity,
    },
}

/// What sandboxes of all engines share.
pub struct Host {
    pub(crate) inner: Arc<Inner>,
}

impl Host {
    /// Takes a data directory into use, whatever a crash left there: sandboxes that run go on, remains of no sandbox are removed.
    pub async fn open(config: HostConfig) -> Result<Arc<Self>, HostError> {
        blocking(move || Ok(Arc::new(Self { inner: Arc::new(Inner::open(config)?) }))).await
    }

    /// Where a layer's files are.
    pub fn layer_directory(&self, digest: &LayerDigest) -> PathBuf {
        self.inner.places.layer(digest)
    }

    /// Chooses the layer with the agent for sandboxes that are made from now on.
    pub fn set_agent_layer(&self, digest: LayerDigest) {
        *self.inner.agent_layer.write().unwrap_or_else(PoisonError::into_inner) = Some(digest);
    }

    /// The layer with the agent, if it was named yet.
    pub fn agent_layer(&self) -> Option<LayerDigest> {
        self.inner.agent_layer.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The mounted pool, in which layers, templates and half-made things are.
    pub fn pool_directory(&self) -> &Path {
        &self.inner.places.pool
    }

    /// Writes down that this sandbox is to be, and gives it its disk, cgroup and slot. On error nothing is left.
    pub async fn reserve(&self, class: IsolationClass, spec: &SandboxSpec) -> Result<Reservation, HostError> {
        let (inner, spec) = (self.inner.clone(), spec.clone());
        blocking(move || inner.reserve(class, spec, None)).await
    }

    /// Writes down that the sandbox was made or brought back whole.
    pub async fn commit(&self, id: &SandboxId) -> Result<(), HostError> {
        let (inner, id) = (self.inner.clone(), id.clone());
        blocking(move || inner.commit(&id)).await
    }

    /// Keeps something for the sandbox's engine in its record.
    pub async fn set_engine(&self, id: &SandboxId, value: serde_json::Value) -> Result<(), HostError> {
        self.change(id, move |record| record.engine = value).await
    }

    /// Kills a sandbox and removes every trace of it. Works from the id alone, on any remains, and twice.
    pub async fn release(&self, id: &SandboxId) -> Result<(), HostError> {
        let (inner, id) = (self.inner.clone(), id.clone());
        blocking(move || inner.release(&id)).await
    }

    /// What is written down about a sandbox.
    pub async fn record(&self, id: &SandboxId) -> Result<Option<Record>, HostError> {
        let (inner, id) = (self.inner.clone(), id.clone());
        blocking(move || records::read(&inner.places, &id)).await
    }

    /// All sandboxes of an engine.
    pub async fn records(&self, class: IsolationClass) -> Result<Vec<Record>, HostError> {
        let inner = self.inner.clone();
        blocking(move || Ok(inner.records()?.into_iter().filter(|record| record.class == class).collect())).await
    }

    /// A sandbox's control group, whether or not it is there.
    pub fn cgroup(&self, id: &SandboxId) -> Cgroup {
        self.inner.tree.group(id.as_str())
    }

    /// A sandbox's slot.
    pub fn slot(&self, record: &Record) -> Slot {
        self.inner.stock.slot(record.slot, record.network)
    }

    /// A sandbox's directory on the host.
    pub fn home(&self, id: &SandboxId) -> PathBuf {
        self.inner.places.home(id)
    }

    /// Ends what runs of a sandbox; all else stays until it is released, and what it used can still be asked. Works twice.
    pub async fn halt(&self, id: &SandboxId) -> Result<(), HostError> {
        let (inner, id) = (self.inner.clone(), id.clone());
        blocking(move || inner.halt(&id)).await
    }

    /// What a sandbox used: its control group's counters and those of groups it had before, and its disk's.
    pub async fn usage(&self, id: &SandboxId) -> Result<Usage, HostError> {
        let (inner, cgroup, id) = (self.inner.clone(), self.cgroup(id), id.clone());
        blocking(move || {
            let failed = |source| HostError::Cgroup { operation: "read the counters of", id: id.clone(), source };
            let cpu_micros = spent::cpu_micros(&inner.places, &cgroup, &id)?;
            // A paused sandbox has a disk and a past.
            if !cgroup.exists() {
                return Ok(Usage { cpu_micros, disk_bytes: inner.pool.usage(&id)?, ..Usage::default() });
            }
            let counted = cgroup.usage().map_err(failed)?;
            Ok(Usage {
                cpu_micros,
                memory_bytes: counted.memory_bytes,
                memory_peak_bytes: counted.memory_peak_bytes,
                disk_bytes: inner.pool.usage(&id)?,
                pids: counted.pids,
                oom_kills: cgroup.oom_kills().map_err(failed)?,
            })
        })
        .await
    }

    /// The host's side of all sandboxes' networks.
    pub fn gateway(&self) -> &Gateway {
        &self.inner.gateway
    }

    /// The short tag in the names of everything that belongs to this data directory.
    pub fn instance(&self) -> &str {
        &self.inner.places.instance
    }

    /// What was found out about this host, for `doctor`.
    pub fn checks(&self) -> Vec<Check> {
        self.inner.checks()
    }

    /// Returns when the background work that earlier calls caused is done: slots are cleaned and in stock.
    pub async fn settle(&self) {
        self.inner.stock.settle().await;
    }

    /// Gives everything back to the machine but the data directory. No sandbox may be left.
    pub async fn close(&self) -> Result<(), HostError> {
        let inner = self.inner.clone();
        blocking(move || inner.close_slots()).await?;
        self.inner.gateway.close().await?;
        let inner = self.inner.clone();
        blocking(move || inner.close_rest()).await
    }

    pub(crate) async fn change(&self, id: &SandboxId, change: impl FnOnce(&mut Record) + Send + 'static) -> Result<(), HostError> {
        let (inner, id) = (self.inner.clone(), id.clone());
        blocking(move || {
            let _turn = inner.busy.wait_for(&id);
            let mut record = records::read(&inner.places, &id)?.ok_or_else(|| HostError::NotFound { id: id.clone() })?;
            change(&mut record);
            records::write(&inner.places, &record)
        })
        .await
    }
}

/// Runs system calls where they do not hold up other tasks.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, HostError> + Send + 'static) -> Result<T, HostError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(HostError::Closed),
    }
}
