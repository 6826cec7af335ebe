//! Pausing: a sandbox leaves the machine and stays on its disk, and comes back in another slot.
//!
//! ```text
//!   Running ── capture ─▶ rest: record "paused" ─▶ kill, cgroup gone, slot back
//!   Paused ─── wake: (disk from its capture) ─▶ record "resuming", slot, cgroup ─▶ engine ─▶ commit: "running" ─▶ capture gone
//!                 └────────────────────────── any failure or crash: rest_again ◀───────┘
//! ```
//! The record is the turning point each time. Before it says "paused" the sandbox still runs; after, what is left of its processes is
//! of no use to anybody and is removed by whoever comes next. A memory image belongs to the disk of its moment: once a resumed sandbox has had a
//! chance to write, its disk is made anew from the capture before the image is used again.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::{Instant, SystemTime};

use belljar_linux::cgroup::Tree;
use belljar_types::{ExecutionId, Invalid, LayerDigest, SandboxId, SnapshotId};

use crate::config::Places;
use crate::error::HostError;
use crate::host::{Origin, Reservation};
use crate::inner::{Inner, all_records};
use crate::pool::{MEMORY, Pool};
use crate::record::{Paused, Record, RecordState, Stillness};
use crate::spent::{Note, end_run};
use crate::{records, reserve};

/// What a disk may hold beyond its limit until its sandbox runs again: it may be full, and the host has a few files of its own to write.
const ROOM_TO_START: u64 = 16 << 20;

impl Inner {
    /// A directory for the capture of a sandbox that is about to be paused, empty; its name is the run's.
    pub(crate) fn make_capture(&self, id: &SandboxId, name: &str) -> Result<PathBuf, HostError> {
        let capture = self.places.capture(id, name);
        let failed = |source| HostError::Disk { operation: "make room for a capture of", id: id.clone(), source };
        self.pool.remove_capture(&capture).map_err(failed)?;
        crate::pool::make_directory(&capture)?;
        Ok(capture)
    }

    /// Writes down that it is paused, and ends its processes. `capture` names one that was made, with an image of its memory.
    pub(crate) fn rest(&self, id: &SandboxId, capture: Option<String>) -> Result<(), HostError> {
        self.usable()?;
        let turn = self.busy.wait_for(id);
        let mut record = self.existing(id)?;
        if record.state != RecordState::Running {
            return Err(HostError::WrongState { id: id.clone(), state: "it does not run" });
        }
        // Its disk and image must not be younger than the record that promises them.
        self.pool.sync().map_err(|source| HostError::Disk { operation: "write out", id: id.clone(), source })?;
        let identity = capture.is_some().then(|| record.identity());
        record.ran_before += record.started_at.elapsed().unwrap_or_default();
        record.state = RecordState::Paused;
        record.still = Stillness::Going;
        record.paused = Some(Paused { capture, identity, fresh_disk: false });
        records::write(&self.places, &record)?;
        drop(turn);
        self.leave(&record)
    }

    /// Prepares a paused sandbox's next run.
    pub(crate) fn wake(&self, id: &SandboxId, execution: &ExecutionId) -> Result<Reservation, HostError> {
        self.usable()?;
        let started = Instant::now();
        let turn = self.busy.wait_for(id);
        let record = self.existing(id)?;
        let (RecordState::Paused, Some(paused)) = (record.state, record.paused.clone()) else {
            return Err(HostError::WrongState { id: id.clone(), state: "it is not paused" });
        };
        // A pause may have been cut short after its turning point.
        end_run(&self.places, &self.tree, id, Note::Lasting)?;
        let made = self.put_on_stage(record, paused, execution);
        drop(turn);
        match &made {
            Ok(_) => tracing::info!(sandbox = %id, micros = started.elapsed().as_micros(), "sandbox woken"),
            Err(_) => {
                if let Err(error) = self.rest_again(id) {
                    tracing::error!(sandbox = %id, %error, "a failed resume could not be taken back; it is when the host is next opened");
                }
            }
        }
        made
    }

    fn put_on_stage(&self, mut record: Record, mut paused: Paused, execution: &ExecutionId) -> Result<Reservation, HostError> {
        let (id, disk) = (record.id.clone(), self.places.subvolume(&record.id));
        let capture = paused.capture.as_ref().map(|name| self.places.capture(&id, name));
        if let (true, Some(capture)) = (paused.fresh_disk, &capture) {
            self.pool.create_from(&id, capture, record.spec.limits.disk_bytes)?;
        }
        self.pool.limit(&id, record.spec.limits.disk_bytes.saturating_add(ROOM_TO_START))?;
        self.pool.renew_work(&id, &disk)?;
        if paused.identity.is_none() {
            // It boots anew, so it gets the agent that is current now.
            record.agent = Some(self.current_agent()?);
        }
        let (layers, volumes) = (self.layers(&record.spec.layers, record.agent.as_ref())?, self.volumes_of(&record.spec)?);
        let slot = self.stock.take(record.spec.network)?;
        paused.fresh_disk = paused.identity.is_some();
        let image = capture.map(|capture| capture.join(MEMORY));
        let origin = match (paused.identity.clone(), image) {
            (Some(identity), Some(image)) => Origin::Memory { image, identity },
            _ => Origin::Disk,
        };
        record.execution = execution.clone();
        record.spec.execution = execution.clone();
        record.token = reserve::new_token();
        record.started_at = SystemTime::now();
        record.state = RecordState::Resuming;
        record.paused = Some(paused);
        record.on(&slot);
        records::write(&self.places, &record).inspect_err(|_| self.stock.give_back(slot.number, slot.network))?;
        let cgroup = self.make_cgroup(&record)?;
        Ok(Reservation {
            cgroup,
            slot,
            upper: disk.join("upper"),
            work: disk.join("work"),
            home: self.places.home(&id),
            layers,
            origin,
            volumes,
            record,
        })
    }

    /// Undoes a resume that did not succeed; does nothing to a sandbox that is not being resumed.
    pub(crate) fn rest_again(&self, id: &SandboxId) -> Result<(), HostError> {
        let turn = self.busy.wait_for(id);
        let mut record = self.existing(id)?;
        if record.state != RecordState::Resuming {
            return Ok(());
        }
        record.state = RecordState::Paused;
        records::write(&self.places, &record)?;
        drop(turn);
        self.leave(&record)
    }

    /// Writes down that the sandbox runs, and drops what it was resumed from.
    pub(crate) fn commit(&self, id: &SandboxId) -> Result<(), HostError> {
        let _turn = self.busy.wait_for(id);
        let mut record = self.existing(id)?;
        record.state = RecordState::Running;
        let paused = record.paused.take();
        if paused.is_some() {
            self.pool.limit(id, record.spec.limits.disk_bytes)?;
        }
        records::write(&self.places, &record)?;
        if paused.is_some() { remove_captures(&self.places, &self.pool, id) } else { Ok(()) }
    }

    /// Turns a sandbox into a paused one with the state of one of its snapshots, and ends what ran of it.
    pub(crate) fn roll_back(&self, id: &SandboxId, snapshot: &SnapshotId, name: &ExecutionId) -> Result<(), HostError> {
        self.usable()?;
        let turn = self.busy.wait_for(id);
        let mut record = self.existing(id)?;
        let snapshot = self.snapshot(snapshot)?;
        if snapshot.source != *id || snapshot.class != record.class {
            return Err(
                Invalid::new("snapshot", "a snapshot of this very sandbox; make a fork of another one's", snapshot.id.as_str()).into()
            );
        }
        let was_running = match record.state {
            RecordState::Running => true,
            RecordState::Paused => false,
            _ => return Err(HostError::WrongState { id: id.clone(), state: "it is being made or resumed" }),
        };
        let capture = self.make_capture(id, name.as_str())?;
        let failed = |source| HostError::Snapshot { operation: "take over", id: snapshot.id.clone(), source };
        fs::remove_dir(&capture).map_err(failed)?;
        self.pool.copy_capture(&self.places.snapshot(&snapshot.id), &capture, snapshot.identity.is_some()).map_err(failed)?;
        if was_running {
            record.ran_before += record.started_at.elapsed().unwrap_or_default();
        }
        record.spec.layers = snapshot.layers;
        record.agent = snapshot.agent;
        record.state = RecordState::Paused;
        record.still = Stillness::Going;
        record.paused = Some(Paused { capture: Some(name.as_str().to_owned()), identity: snapshot.identity, fresh_disk: true });
        records::write(&self.places, &record)?;
        drop(turn);
        if was_running { self.leave(&record) } else { end_run(&self.places, &self.tree, id, Note::Lasting) }
    }

    /// The layers that some sandbox or snapshot needs, agents' included.
    pub(crate) fn layers_in_use(&self) -> Result<BTreeSet<LayerDigest>, HostError> {
        let sandboxes = self.records()?.into_iter().map(|record| (record.spec.layers, record.agent));
        let snapshots = self.snapshots()?.into_iter().map(|snapshot| (snapshot.layers, snapshot.agent));
        let current = self.agent_layer.read().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(sandboxes.chain(snapshots).flat_map(|(layers, agent)| layers.into_iter().chain(agent)).chain(current).collect())
    }

    pub(crate) fn existing(&self, id: &SandboxId) -> Result<Record, HostError> {
        records::read(&self.places, id)?.ok_or_else(|| HostError::NotFound { id: id.clone() })
    }

    /// Ends its processes and gives its slot back; its record says that it has none.
    fn leave(&self, record: &Record) -> Result<(), HostError> {
        end_run(&self.places, &self.tree, &record.id, Note::Lasting)?;
        self.stock.give_back(record.slot, record.network);
        Ok(())
    }
}

/// Puts in order what a crash left in the middle of a pause, a resume or a moment of standing still.
pub(crate) fn recover(places: &Places, tree: &Arc<Tree>, pool: &Pool) -> Result<(), HostError> {
    for mut record in all_records(places)? {
        let id = record.id.clone();
        match record.state {
            RecordState::Paused => end_run(places, tree, &id, Note::Lasting)?,
            RecordState::Resuming => {
                end_run(places, tree, &id, Note::Lasting)?;
                record.state = RecordState::Paused;
                records::write(places, &record)?;
            }
            RecordState::Running if record.still == Stillness::Frozen => {
                let cgroup = tree.group(id.as_str());
                if cgroup.exists() {
                    cgroup.thaw().map_err(|source| HostError::Cgroup { operation: "thaw", id: id.clone(), source })?;
                }
                record.still = Stillness::Going;
                records::write(places, &record)?;
            }
            RecordState::Running | RecordState::Making => {}
        }
        remove_other_captures(places, pool, &record)?;
    }
    let kept = records::names::<SandboxId>(&places.paused)?;
    kept.iter().filter(|id| !places.home(id).exists()).try_for_each(|id| remove_captures(places, pool, id))
}

/// All captures of a sandbox but the one that its record names.
fn remove_other_captures(places: &Places, pool: &Pool, record: &Record) -> Result<(), HostError> {
    let named = record.paused.as_ref().and_then(|paused| paused.capture.as_deref());
    remove_captures_but(places, pool, &record.id, named)
}

/// All captures of a sandbox.
pub(crate) fn remove_captures(places: &Places, pool: &Pool, id: &SandboxId) -> Result<(), HostError> {
    remove_captures_but(places, pool, id, None)
}

fn remove_captures_but(places: &Places, pool: &Pool, id: &SandboxId, but: Option<&str>) -> Result<(), HostError> {
    let directory = places.paused.join(id.as_str());
    let attempt = || {
        let entries = match fs::read_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        for entry in entries {
            let entry = entry?;
            if entry.file_name().to_str() != but || but.is_none() {
                pool.remove_capture(&entry.path())?;
            }
        }
        if but.is_none() { fs::remove_dir(&directory) } else { Ok(()) }
    };
    attempt().map_err(|source| HostError::Disk { operation: "remove the captures of", id: id.clone(), source })
}
