//! The engine's own processes are killed in the middle of a pause, a snapshot, a fork and a resume: the sentry or the gofer of the gVisor class, the first process of the container class.
//! Afterwards the sandbox runs, is paused or has ended, and says which; no half snapshot is seen, those that were acknowledged make forks, and nothing is left.
//!
//! A quick slice by default, 240 kills with `BELLJAR_FULL=1`. The seed is printed; `BELLJAR_SEED` plays it again.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "engine_death/after.rs"]
mod after;
#[path = "engine_death/children.rs"]
mod children;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use belljar_ports::{Runtime, SnapshotKind};
use belljar_testkit::{Census, Dice, Lab, Sandbox, block_on, full, kill_engine, scaled, sh};
use belljar_types::{ExecutionId, IsolationClass, ProcessSpec, SandboxId, SandboxSpec, SnapshotId};

/// Connections and pools of this process.
const TOLERATED: [(&str, usize); 3] = [("network namespaces", 4), ("interfaces", 4), ("open files of this process", 64)];
/// A verb that has not ended by then hangs.
const HANGS: Duration = Duration::from_secs(180);
const KEEPER: &str = "keeper";

/// What is being done when the engine dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verb {
    Pause,
    Snapshot,
    Fork,
    Resume,
}

const VERBS: [Verb; 4] = [Verb::Pause, Verb::Snapshot, Verb::Fork, Verb::Resume];

/// One sandbox, a snapshot of it that was acknowledged, and a fork that may come to be.
struct Scene {
    lab: &'static Lab,
    class: IsolationClass,
    runtime: Arc<dyn Runtime>,
    id: SandboxId,
    kept: SnapshotId,
    fork: SandboxSpec,
    taken: SnapshotId,
    kind: SnapshotKind,
}

impl Scene {
    async fn set(lab: &'static Lab, class: IsolationClass, verb: Verb, with_memory: bool) -> Self {
        let Sandbox { runtime, guest, execution } = lab.sandbox(class).await;
        let id = execution.sandbox;
        sh(&*guest, "echo good > marker; sync").await.text();
        let mut keeper = ProcessSpec::new(["/bin/sleep", "100000"]);
        keeper.id = KEEPER.parse().unwrap();
        guest.start(&keeper).await.unwrap();
        let memory = with_memory && runtime.capabilities().snapshot_memory;
        let kind = if memory { SnapshotKind::Memory } else { SnapshotKind::Filesystem };
        let kept = SnapshotId::random();
        runtime.snapshot(&id, &kept, kind).await.unwrap();
        if verb == Verb::Resume {
            // What stands still in memory goes on at once: there is no middle of it.
            runtime.pause(&id, kind.into()).await.unwrap();
        }
        Self { lab, class, runtime, id, kept, fork: lab.spec(), taken: SnapshotId::random(), kind }
    }

    /// The sandbox whose engine is killed.
    fn doomed(&self, verb: Verb) -> &SandboxId {
        if verb == Verb::Fork { &self.fork.id } else { &self.id }
    }

    async fn perform(&self, verb: Verb, with_memory: bool) -> Result<(), belljar_ports::RuntimeError> {
        let pause = if with_memory { SnapshotKind::Memory } else { SnapshotKind::Filesystem };
        match verb {
            Verb::Pause => self.runtime.pause(&self.id, pause.into()).await,
            Verb::Snapshot => self.runtime.snapshot(&self.id, &self.taken, self.kind).await.map(drop),
            Verb::Fork => self.runtime.fork(&self.kept, &self.fork).await.map(drop),
            Verb::Resume => self.runtime.resume(&self.id, &ExecutionId::random()).await.map(drop),
        }
    }
}

#[test]
fn an_engine_killed_in_the_middle_leaves_nothing_half_and_loses_nothing_promised() {
    block_on(async {
        let mut dice = Dice::new("engine_death");
        let lab = Lab::get().await;
        for class in [IsolationClass::Container, IsolationClass::Gvisor] {
            lab.sandbox(class).await.destroy().await;
        }
        let before = Census::take(&lab.scope());
        let mut told = BTreeMap::<String, usize>::new();
        for round in 0..scaled(8, 240) {
            let class = if round % 2 == 0 { IsolationClass::Container } else { IsolationClass::Gvisor };
            let verb = VERBS[usize::try_from(round / 2).unwrap() % VERBS.len()];
            let with_memory = dice.below(4) > 0;
            let scene = Scene::set(lab, class, verb, with_memory).await;
            let delay = Duration::from_micros(dice.below(if class == IsolationClass::Gvisor { 250_000 } else { 15_000 }));
            let which = dice.below(2) == 0;
            let performing = scene.perform(verb, with_memory);
            let killing = kill_engine(class, scene.doomed(verb), delay, which);
            let (done, killed) = tokio::join!(tokio::time::timeout(HANGS, performing), killing);
            let context = format!("round {round}: {verb:?} of {class}, memory {with_memory}, killed {killed:?} after {delay:?}");
            let done = done.unwrap_or_else(|_| panic!("{context}: hangs"));
            let state = after::check(&scene, verb, done, &context).await;
            let outcome = if killed.is_some() { state } else { "nothing was left to kill" };
            *told.entry(format!("{class} {verb:?}: {outcome}")).or_default() += 1;
            lab.clear().await.unwrap_or_else(|error| panic!("{context}: {error:?}"));
            if round % 8 == 7 {
                let settled = Census::settle(&before, &lab.scope(), &TOLERATED).await;
                assert_eq!(settled, Ok(()), "{context}; children: {:?}", children::children());
            }
        }
        println!("{told:#?}");
        for (class, verb) in
            [IsolationClass::Container, IsolationClass::Gvisor].into_iter().flat_map(|class| VERBS.map(|verb| (class, verb)))
        {
            let hit = |outcome: &String| outcome.starts_with(&format!("{class} {verb:?}")) && !outcome.ends_with("to kill");
            assert!(!full() || told.keys().any(hit), "nothing was killed during {verb:?} of {class}");
        }
    });
}
