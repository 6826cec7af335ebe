//! Reserving: the intent is written down first, then everything is made; what fails half-way is taken back.

use std::sync::PoisonError;
use std::time::{Instant, SystemTime};

use belljar_linux::cgroup::CgroupLimits;
use belljar_types::{Invalid, IsolationClass, LayerDigest, Limits, SandboxSpec, Secret};

use crate::error::HostError;
use crate::host::Reservation;
use crate::inner::Inner;
use crate::record::{Record, RecordState};
use crate::records;

impl Inner {
    pub(crate) fn reserve(&self, class: IsolationClass, spec: SandboxSpec) -> Result<Reservation, HostError> {
        self.usable()?;
        validate(&spec)?;
        let started = Instant::now();
        let agent = self.agent_layer.read().unwrap_or_else(PoisonError::into_inner).clone().ok_or(HostError::NoAgent)?;
        let layers = spec.layers.iter().chain([&agent]).map(|digest| self.layer(digest)).collect::<Result<_, _>>()?;
        let id = spec.id.clone();
        let turn = self.busy.wait_for(&id);
        let home = records::claim(&self.places, &id)?;
        let made = self.make(class, spec, layers, home);
        drop(turn);
        match &made {
            Ok(_) => tracing::info!(sandbox_id = %id, %class, micros = started.elapsed().as_micros(), "sandbox reserved"),
            Err(_) => {
                if let Err(error) = self.release(&id) {
                    tracing::error!(sandbox_id = %id, %error, "a failed reservation could not be taken back; it is tried again when the host is next opened");
                }
            }
        }
        made
    }

    fn make(
        &self,
        class: IsolationClass,
        spec: SandboxSpec,
        layers: Vec<std::path::PathBuf>,
        home: std::path::PathBuf,
    ) -> Result<Reservation, HostError> {
        let id = spec.id.clone();
        let slot = self.stock.take(spec.network)?;
        let record = Record {
            id: id.clone(),
            execution: spec.execution.clone(),
            class,
            token: Secret::new(random_token()),
            slot: slot.number,
            network: slot.network,
            guest_address: slot.guest_address,
            gateway_address: slot.gateway_address,
            uid_base: slot.uid_base,
            state: RecordState::Making,
            started_at: SystemTime::now(),
            engine: serde_json::Value::Null,
            spec,
        };
        // Until the record names the slot, nobody else could give it back.
        records::write(&self.places, &record).inspect_err(|_| self.stock.give_back(slot.number, slot.network))?;
        self.pool.create(&id, record.spec.limits.disk_bytes)?;
        let limits = cgroup_limits(&record.spec.limits);
        let cgroup = self.tree.create(id.as_str(), &limits);
        let cgroup = cgroup.map_err(|source| HostError::Cgroup { operation: "make", id: id.clone(), source })?;
        let disk = self.places.subvolume(&id);
        Ok(Reservation { record, cgroup, slot, upper: disk.join("upper"), work: disk.join("work"), home, layers })
    }

    fn layer(&self, digest: &LayerDigest) -> Result<std::path::PathBuf, HostError> {
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

fn random_token() -> [u8; 32] {
    let mut token = [0; 32];
    getrandom::fill(&mut token).expect("the kernel has randomness after boot");
    token
}
