//! Pause, resume and snapshot with memory that is dirty.

use std::time::Instant;

use belljar_ports::SnapshotKind;
use belljar_testkit::{Lab, Sandbox, sh};
use belljar_types::{ExecutionId, IsolationClass, Limits, PauseKind, ProcessSpec, SandboxSpec, SnapshotId};

use crate::Failure;
use crate::figures::Figures;

/// Fills memory with bytes that nothing can share or compress, says so, and waits.
pub(crate) fn filler(megabytes: usize) -> String {
    format!(
        "import os, time\nheld = [os.urandom(1 << 20) for _ in range({megabytes})]\nopen('/tmp/filled', 'w').write('y')\ntime.sleep(1000000)"
    )
}

pub(crate) fn spec(lab: &Lab, megabytes: usize) -> SandboxSpec {
    let base = lab.spec();
    let memory_bytes = ((megabytes as u64) + 256) << 20;
    SandboxSpec { limits: Limits { memory_bytes, ..base.limits.clone() }, ..base }
}

/// A sandbox of the gvisor class with so much memory in use.
pub(crate) async fn filled(lab: &Lab, megabytes: usize) -> Result<Sandbox, Failure> {
    let sandbox = lab.create(IsolationClass::Gvisor, &spec(lab, megabytes)).await?;
    sandbox.guest.start(&ProcessSpec::new(["python3".to_owned(), "-c".to_owned(), filler(megabytes)])).await?;
    sh(&*sandbox.guest, "until [ -s /tmp/filled ]; do sleep 0.05; done").await;
    Ok(sandbox)
}

pub(crate) async fn pause_and_resume(lab: &Lab, megabytes: usize, figures: &mut Figures) -> Result<(), Failure> {
    let Sandbox { runtime, execution, guest } = filled(lab, megabytes).await?;
    drop(guest);
    let id = execution.sandbox;
    let snapshot = SnapshotId::random();
    let start = Instant::now();
    let taken = runtime.snapshot(&id, &snapshot, SnapshotKind::Memory).await?;
    figures.add(&format!("gvisor: snapshot of a running sandbox, {megabytes} MB dirty"), start);
    figures.add_time(&format!("gvisor: stood still for a snapshot, {megabytes} MB dirty"), taken.stood_still);
    let image: u64 = lab.host.capture(&snapshot).await?.memory.iter().filter_map(|file| Some(file.metadata().ok()?.len())).sum();
    figures.set_bytes(&format!("gvisor: memory image, {megabytes} MB dirty"), image);
    runtime.remove_snapshot(&snapshot).await?;
    let start = Instant::now();
    runtime.pause(&id, PauseKind::Memory).await?;
    figures.add(&format!("gvisor: pause, {megabytes} MB dirty"), start);
    let start = Instant::now();
    runtime.resume(&id, &ExecutionId::random()).await?;
    runtime.guest(&id).await?.hello().await?;
    figures.add(&format!("gvisor: resume, {megabytes} MB dirty"), start);
    runtime.destroy(&id).await?;
    Ok(())
}

/// What stays in memory and is warm when it is wanted again.
pub(crate) async fn stand_by(lab: &Lab, class: IsolationClass, figures: &mut Figures) -> Result<(), Failure> {
    let sandbox = lab.sandbox(class).await;
    let id = sandbox.execution.sandbox.clone();
    let start = Instant::now();
    sandbox.runtime.pause(&id, PauseKind::Standby).await?;
    figures.add(&format!("{class}: standby"), start);
    let start = Instant::now();
    sandbox.runtime.resume(&id, &ExecutionId::random()).await?;
    sandbox.runtime.guest(&id).await?.hello().await?;
    figures.add(&format!("{class}: resume from standby until it answers"), start);
    sandbox.destroy().await;
    Ok(())
}

/// Of files alone.
pub(crate) async fn snapshot_files(lab: &Lab, figures: &mut Figures) -> Result<(), Failure> {
    let sandbox = lab.sandbox(IsolationClass::Container).await;
    let id = sandbox.execution.sandbox.clone();
    let snapshot = SnapshotId::random();
    let start = Instant::now();
    let taken = sandbox.runtime.snapshot(&id, &snapshot, SnapshotKind::Filesystem).await?;
    figures.add("container: snapshot of a running sandbox", start);
    figures.add_time("container: stood still for a snapshot", taken.stood_still);
    sandbox.runtime.remove_snapshot(&snapshot).await?;
    sandbox.destroy().await;
    Ok(())
}
