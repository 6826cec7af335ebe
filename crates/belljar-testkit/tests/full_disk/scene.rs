//! What is done when the disk runs full, and what must hold before and after.

use std::sync::Arc;

use belljar_image::{Catalog, CatalogOptions, LayerStore};
use belljar_ports::{Guest, Presence, Runtime, RuntimeError, SnapshotKind, StepKey, Templates, Volumes};
use belljar_testkit::{Lab, Sandbox, sh};
use belljar_types::{ExecutionId, IsolationClass, PauseKind, ProcessSpec, SandboxId, SandboxSpec, SnapshotId, VolumeId, chain};

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Pause,
    Snapshot,
    Fork,
    Resume,
    RollBack,
    Layer,
    CloneVolume,
    PauseFiles,
}

pub(crate) const VERBS: [Verb; 8] =
    [Verb::Pause, Verb::Snapshot, Verb::Fork, Verb::Resume, Verb::RollBack, Verb::Layer, Verb::CloneVolume, Verb::PauseFiles];

const KEEPER: &str = "keeper";
const VOLUME_BYTES: u64 = 8 << 20;

pub(crate) struct Scene<'a> {
    lab: &'a Lab,
    runtime: Arc<dyn Runtime>,
    catalog: Catalog,
    id: SandboxId,
    kept: SnapshotId,
    taken: SnapshotId,
    fork: SandboxSpec,
    volume: VolumeId,
    copy: VolumeId,
    kind: SnapshotKind,
}

impl<'a> Scene<'a> {
    pub(crate) async fn set(lab: &'a Lab, class: IsolationClass, verb: Verb) -> Self {
        let Sandbox { runtime, guest, execution } = lab.sandbox(class).await;
        let id = execution.sandbox;
        let written = "echo good > marker; mkdir many; for i in $(seq 50); do head -c 20000 /dev/urandom > many/$i; done; sync; cat marker";
        assert_eq!(sh(&*guest, written).await.text(), "good");
        start_keeper(&*guest).await;
        let kind = if runtime.capabilities().snapshot_memory { SnapshotKind::Memory } else { SnapshotKind::Filesystem };
        let kept = SnapshotId::random();
        runtime.snapshot(&id, &kept, kind).await.unwrap();
        match verb {
            Verb::Resume => runtime.pause(&id, kind.into()).await.unwrap(),
            Verb::Layer => runtime.pause(&id, PauseKind::Filesystem).await.unwrap(),
            _ => {}
        }
        let store = LayerStore::open(lab.host.pool_directory()).unwrap();
        let (volume, copy) = (VolumeId::random(), VolumeId::random());
        lab.host.volumes().make(&volume, VOLUME_BYTES).await.unwrap();
        let catalog = Catalog::new(store, CatalogOptions::default());
        Self { lab, runtime, catalog, id, kept, taken: SnapshotId::random(), fork: lab.spec(), volume, copy, kind }
    }

    /// Does it; says why not, with all causes.
    pub(crate) async fn perform(&self, verb: Verb) -> Result<(), String> {
        let run = ExecutionId::random();
        let told = |error: RuntimeError| chain(&error);
        match verb {
            Verb::Pause => self.runtime.pause(&self.id, PauseKind::Memory).await.map_err(told),
            Verb::PauseFiles => self.runtime.pause(&self.id, PauseKind::Filesystem).await.map_err(told),
            Verb::Snapshot => self.runtime.snapshot(&self.id, &self.taken, self.kind).await.map(drop).map_err(told),
            Verb::Fork => self.runtime.fork(&self.kept, &self.fork).await.map(drop).map_err(told),
            Verb::Resume => self.runtime.resume(&self.id, &run).await.map(drop).map_err(told),
            Verb::RollBack => match self.runtime.rollback(&self.id, &self.kept, &run).await {
                // Half-way it is paused in the state of the snapshot, and goes on from there.
                Err(_) if matches!(self.presence().await, Some(Presence::Paused { .. })) => {
                    self.runtime.resume(&self.id, &run).await.map(drop).map_err(told)
                }
                other => other.map(drop).map_err(told),
            },
            Verb::Layer => {
                let written = self.runtime.written(&self.id).await.map_err(told)?;
                let kept = self.catalog.keep_step(&StepKey([7; 32]), &written, "what a trial wrote").await;
                kept.map(drop).map_err(|error| chain(&error))
            }
            Verb::CloneVolume => {
                let copied = self.lab.host.volumes().copy(&self.volume, &self.copy, VOLUME_BYTES, false).await;
                copied.map_err(|error| chain(&error))
            }
        }
    }

    /// It failed: nothing has changed.
    pub(crate) async fn check_as_before(&self, verb: Verb, context: &str) {
        let presence = self.presence().await;
        match verb {
            Verb::Resume | Verb::Layer => assert!(matches!(presence, Some(Presence::Paused { .. })), "{context}: {presence:?}"),
            Verb::RollBack if matches!(presence, Some(Presence::Paused { .. })) => {}
            _ => {
                assert!(matches!(presence, Some(Presence::Running(_))), "{context}: {presence:?}");
                self.check_alive(&self.id, true, context).await;
            }
        }
        let listed = self.runtime.snapshots().await.unwrap();
        assert_eq!(listed.iter().map(|found| &found.id).collect::<Vec<_>>(), [&self.kept], "{context}");
        let volumes = self.lab.host.volumes().inventory().await.unwrap();
        assert_eq!(volumes, std::slice::from_ref(&self.volume), "{context}");
        let found = self.runtime.inventory().await.unwrap();
        assert_eq!(found.len(), 1, "{context}: {found:?}");
    }

    /// It worked, and what came of it is whole.
    pub(crate) async fn check_done(&self, verb: Verb, context: &str) {
        let memory = self.kind == SnapshotKind::Memory;
        let expected = match verb {
            Verb::Pause | Verb::PauseFiles | Verb::Layer => {
                let back = self.runtime.resume(&self.id, &ExecutionId::random()).await;
                back.unwrap_or_else(|error| panic!("{context}: {error:?}"));
                verb == Verb::Pause
            }
            Verb::Snapshot | Verb::Fork | Verb::CloneVolume => true,
            Verb::Resume | Verb::RollBack => memory,
        };
        self.check_alive(&self.id, expected, context).await;
        if verb == Verb::CloneVolume {
            assert!(self.lab.host.volumes().inventory().await.unwrap().contains(&self.copy), "{context}");
        }
        for snapshot in self.runtime.snapshots().await.unwrap() {
            let spec = self.lab.spec();
            self.runtime.fork(&snapshot.id, &spec).await.unwrap_or_else(|error| panic!("{context}: {error:?}"));
            self.check_alive(&spec.id, memory, context).await;
        }
    }

    pub(crate) async fn clear(self) {
        self.lab.clear().await.unwrap();
        for volume in [&self.volume, &self.copy] {
            self.lab.host.volumes().remove(volume).await.unwrap();
        }
        self.catalog.sweep(&self.lab.host.layers_in_use().await.unwrap(), false).await.unwrap();
    }

    async fn presence(&self) -> Option<Presence> {
        self.runtime.inventory().await.unwrap().into_iter().find(|found| found.id == self.id).map(|found| found.presence)
    }

    async fn check_alive(&self, id: &SandboxId, with_memory: bool, context: &str) {
        let guest = self.runtime.guest(id).await.unwrap_or_else(|error| panic!("{context}: {error:?}"));
        assert_eq!(sh(&*guest, "cat marker").await.text(), "good", "{context}");
        let processes = guest.processes().await.unwrap();
        let alive = processes.iter().any(|process| process.id.as_str() == KEEPER && process.exit.is_none());
        assert!(alive || !with_memory, "{context}: {id} lost its memory");
    }
}

async fn start_keeper(guest: &dyn Guest) {
    let mut keeper = ProcessSpec::new(["/bin/sleep", "100000"]);
    keeper.id = KEEPER.parse().unwrap();
    guest.start(&keeper).await.unwrap();
}
