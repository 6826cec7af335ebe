//! Reserving: the intent is written down first, then everything is made; what fails half-way is taken back.

use std::path::PathBuf;
use std::sync::PoisonError;
use std::time::{Duration, Instant, SystemTime};

use belljar_linux::cgroup::{Cgroup, CgroupLimits};
use belljar_types::{Invalid, IsolationClass, LayerDigest, Limits, MountMode, SandboxSpec, Secret, SnapshotId, VolumeMount};

use crate::error::HostError;
use crate::host::{Origin, Reservation, ShownVolume};
use crate::inner::Inner;
use crate::pool::MEMORY;
use crate::record::{Record, RecordState, Stillness};
use crate::records;
use crate::snapshots::Snapshot;

impl Inner {
    /// `from`: a snapshot whose disk, and memory if it has one, the sandbox begins with.
    pub(crate) fn reserve(
        &self,
        class: IsolationClass,
        mut spec: SandboxSpec,
        from: Option<&SnapshotId>,
    ) -> Result<Reservation, HostError> {
        self.usable()?;
        let from = from.map(|id| self.snapshot(id)).transpose()?;
        if let Some(snapshot) = &from {
            spec.layers.clone_from(&snapshot.layers);
            if snapshot.identity.is_some() && snapshot.class != class {
                let expected = format!("a snapshot of this class: memory that the {} class kept cannot be used by another", snapshot.class);
                return Err(Invalid::new("snapshot", &expected, snapshot.id.as_str()).into());
            }
        }
        validate(&spec)?;
        let started = Instant::now();
        let kept_agent = from.as_ref().filter(|snapshot| snapshot.identity.is_some()).and_then(|snapshot| snapshot.agent.clone());
        let agent = kept_agent.map_or_else(|| self.current_agent(), Ok)?;
        let layers = self.layers(&spec.layers, Some(&agent))?;
        self.volumes_of(&spec)?;
        let id = spec.id.clone();
        let turn = self.busy.wait_for(&id);
        let home = records::claim(&self.places, &id)?;
        let made = self.make(class, spec, (layers, agent), home, from);
        drop(turn);
        match &made {
            Ok(_) => tracing::info!(sandbox = %id, %class, micros = started.elapsed().as_micros(), "sandbox reserved"),
            Err(_) => {
                if let Err(error) = self.release(&id) {
                    tracing::error!(sandbox = %id, %error, "a failed reservation could not be taken back; it is tried again when the host is next opened");
                }
            }
        }
        made
    }

    fn make(
        &self,
        class: IsolationClass,
        spec: SandboxSpec,
        (layers, agent): (Vec<PathBuf>, LayerDigest),
        home: PathBuf,
        from: Option<Snapshot>,
    ) -> Result<Reservation, HostError> {
        let id = spec.id.clone();
        let slot = self.stock.take(spec.network)?;
        let record = Record {
            id: id.clone(),
            execution: spec.execution.clone(),
            class,
            token: new_token(),
            slot: slot.number,
            network: slot.network,
            guest_address: slot.guest_address,
            gateway_address: slot.gateway_address,
            uid_base: slot.uid_base,
            state: RecordState::Making,
            started_at: SystemTime::now(),
            engine: serde_json::Value::Null,
            agent: Some(agent),
            still: Stillness::Going,
            ran_before: Duration::ZERO,
            paused: None,
            spec,
        };
        // Until the record names the slot, nobody else could give it back.
        records::write(&self.places, &record).inspect_err(|_| self.stock.give_back(slot.number, slot.network))?;
        let (disk, disk_bytes) = (self.places.subvolume(&id), record.spec.limits.disk_bytes);
        let origin = match from {
            None => {
                self.pool.create(&id, disk_bytes)?;
                Origin::Blank
            }
            Some(snapshot) => {
                let capture = self.places.snapshot(&snapshot.id);
                self.pool.create_from(&id, &capture, disk_bytes)?;
                self.pool.renew_work(&id, &disk)?;
                let memory = |identity| Origin::Memory { image: capture.join(MEMORY), identity };
                snapshot.identity.map_or(Origin::Disk, memory)
            }
        };
        let (cgroup, volumes) = (self.make_cgroup(&record)?, self.volumes_of(&record.spec)?);
        Ok(Reservation { record, cgroup, slot, upper: disk.join("upper"), work: disk.join("work"), home, layers, origin, volumes })
    }

    pub(crate) fn make_cgroup(&self, record: &Record) -> Result<Cgroup, HostError> {
        let made = self.tree.create(record.id.as_str(), &cgroup_limits(&record.spec.limits));
        made.map_err(|source| HostError::Cgroup { operation: "make", id: record.id.clone(), source })
    }

    pub(crate) fn current_agent(&self) -> Result<LayerDigest, HostError> {
        self.agent_layer.read().unwrap_or_else(PoisonError::into_inner).clone().ok_or(HostError::NoAgent)
    }

    /// The directories of these layers, the agent's last.
    pub(crate) fn layers(&self, layers: &[LayerDigest], agent: Option<&LayerDigest>) -> Result<Vec<PathBuf>, HostError> {
        layers.iter().chain(agent).map(|digest| self.layer(digest)).collect()
    }

    /// Where a sandbox's volumes are, all of which have to be there.
    pub(crate) fn volumes_of(&self, spec: &SandboxSpec) -> Result<Vec<ShownVolume>, HostError> {
        let shown = |mount: &VolumeMount| {
            let source = self.places.volume(&mount.volume);
            self.serve_bucket(&mount.volume).map_err(|source| HostError::Bucket { name: mount.name.clone(), source })?;
            if !source.is_dir() {
                return Err(Invalid::new("volumes", "volumes that are on this host", mount.name.as_str()).into());
            }
            let (read_only, is_bucket) = (mount.mode == MountMode::ReadOnly, self.is_bucket(&mount.volume));
            Ok(ShownVolume { source, at: mount.path.clone(), read_only, is_bucket })
        };
        spec.volumes.iter().map(shown).collect()
    }

    fn layer(&self, digest: &LayerDigest) -> Result<PathBuf, HostError> {
        let path = self.places.layer(digest);
        if path.is_dir() { Ok(path) } else { Err(HostError::MissingLayer { digest: digest.clone() }) }
    }
}

fn validate(spec: &SandboxSpec) -> Result<(), Invalid> {
    spec.limits.validate()?;
    if spec.layers.is_empty() {
        return Err(Invalid::new("layers", "at least one layer", ""));
    }
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    match &spec.hostname {
        Some(name) if name.len() > 64 || !name.split('.').all(label) => {
            Err(Invalid::new("hostname", "at most 64 characters: labels of A-Z, a-z, 0-9 and '-', joined by dots", name))
        }
        _ => Ok(()),
    }
}

fn cgroup_limits(limits: &Limits) -> CgroupLimits {
    CgroupLimits { cpu_millis: Some(limits.cpu_millis), memory_bytes: Some(limits.memory_bytes), pids: Some(limits.pids) }
}

/// A secret for one run.
pub(crate) fn new_token() -> Secret<[u8; 32]> {
    let mut token = [0; 32];
    getrandom::fill(&mut token).expect("the kernel has randomness after boot");
    Secret::new(token)
}
