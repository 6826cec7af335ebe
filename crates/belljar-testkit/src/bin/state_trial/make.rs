//! The two who are shot: one keeps states and goes back to them, the other makes layers of what sandboxes wrote and sweeps those that nobody needs.
//!
//! Each says what it is about to do (`doing …`), that it is done, and what it was promised. There is nothing here that flattens: a snapshot is of the disk, and adds no layer. What
//! comes nearest is a layer made of an upper directory, as builds of templates do, and the sweep is the one of `belljar gc`.

use std::future::Future;
use std::io::Write;

use belljar_ports::{Runtime, SnapshotKind, StepKey, Templates};
use belljar_testkit::{Lab, Sandbox, sh};
use belljar_types::{ExecutionId, IsolationClass, LayerDigest, ProcessSpec, SandboxId, SnapshotId};

use crate::{Failure, KEEPER, layers_of};

/// Enough files in a layer that making and removing it takes a while.
const FILES: u32 = 400;

/// Does one step, and says so before and after.
async fn step<T, E: Into<Failure>>(name: &str, work: impl Future<Output = Result<T, E>>) -> Result<T, Failure> {
    say(&format!("doing {name}"));
    let done = work.await.map_err(Into::into)?;
    say(&format!("done {name}"));
    Ok(done)
}

async fn begin(lab: &Lab, class: IsolationClass) -> Result<Sandbox, Failure> {
    lab.clear().await?;
    let sandbox = lab.sandbox(class).await;
    sh(&*sandbox.guest, "echo good > marker; sync").await;
    say(&format!("sandbox {}", sandbox.execution.sandbox));
    Ok(sandbox)
}

/// Snapshots, forks, pauses and roll-backs.
pub(crate) async fn state(class: IsolationClass) -> Result<(), Failure> {
    let lab = Lab::open().await?;
    let Sandbox { runtime, execution, .. } = begin(&lab, class).await?;
    let id = execution.sandbox;
    let mut keeper = ProcessSpec::new(["/bin/sleep", "100000"]);
    keeper.id = KEEPER.parse()?;
    let memory = runtime.capabilities().snapshot_memory;
    for round in 0_u64.. {
        let kind = if memory && round.is_multiple_of(2) { SnapshotKind::Memory } else { SnapshotKind::Filesystem };
        // A round that kept files alone has lost it.
        runtime.guest(&id).await?.start(&keeper).await?;
        let snapshot = take(&*runtime, &id, kind).await?;
        let fork = lab.spec();
        step("fork", runtime.fork(&snapshot, &fork)).await?;
        step("pause", runtime.pause(&id, kind.into())).await?;
        step("resume", runtime.resume(&id, &ExecutionId::random())).await?;
        step("destroy", runtime.destroy(&fork.id)).await?;
        step("rollback", runtime.rollback(&id, &snapshot, &ExecutionId::random())).await?;
        give_up(&*runtime, &snapshot).await?;
    }
    Ok(())
}

/// Layers of what a sandbox wrote, snapshots that stand on them and that nothing else knows, and sweeps of those that nobody needs any more.
pub(crate) async fn layers(class: IsolationClass) -> Result<(), Failure> {
    let lab = Lab::open().await?;
    let Sandbox { runtime, execution, .. } = begin(&lab, class).await?;
    let (id, (_, catalog)) = (execution.sandbox, layers_of(&lab)?);
    let mut kept: Option<(SnapshotId, LayerDigest)> = None;
    for round in 0_u64.. {
        let script = format!("mkdir -p many; for i in $(seq {FILES}); do echo {round} > many/$i; done");
        sh(&*runtime.guest(&id).await?, &script).await;
        step("pause", runtime.pause(&id, SnapshotKind::Filesystem.into())).await?;
        let written = runtime.written(&id).await?;
        let mut key = [0; 32];
        key[..8].copy_from_slice(&round.to_le_bytes());
        let layer = step("layer", catalog.keep_step(&StepKey(key), &written, "what a trial wrote")).await?;
        let mut spec = lab.spec();
        spec.layers.push(layer.clone());
        runtime.create(&spec).await?;
        let snapshot = take(&*runtime, &spec.id, SnapshotKind::Filesystem).await?;
        step("destroy", runtime.destroy(&spec.id)).await?;
        let doomed = kept.replace((snapshot, layer));
        if let Some((snapshot, _)) = &doomed {
            give_up(&*runtime, snapshot).await?;
        }
        let in_use = lab.host.layers_in_use().await?;
        let swept = step("gc", catalog.sweep(&in_use, false)).await?;
        let expected: Vec<LayerDigest> = doomed.into_iter().map(|(_, layer)| layer).collect();
        if round > 0 && swept.layers != expected {
            return Err(format!("swept {:?} and not {expected:?}", swept.layers).into());
        }
        step("resume", runtime.resume(&id, &ExecutionId::random())).await?;
    }
    Ok(())
}

async fn take(runtime: &dyn Runtime, id: &SandboxId, kind: SnapshotKind) -> Result<SnapshotId, Failure> {
    let snapshot = SnapshotId::random();
    step("snapshot", runtime.snapshot(id, &snapshot, kind)).await?;
    say(&format!("promised {snapshot}"));
    Ok(snapshot)
}

async fn give_up(runtime: &dyn Runtime, snapshot: &SnapshotId) -> Result<(), Failure> {
    say(&format!("withdrawn {snapshot}"));
    step("remove", runtime.remove_snapshot(snapshot)).await
}

fn say(text: &str) {
    println!("{text}");
    // The reader may be gone already; then the shot is on its way.
    let _ = std::io::stdout().flush();
}
