//! Forks: how many, of which class, and with how many files.

use std::time::Instant;

use belljar_ports::SnapshotKind;
use belljar_testkit::{Lab, Sandbox, sh};
use belljar_types::{IsolationClass, Limits, SandboxSpec, SnapshotId};
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::figures::Figures;
use crate::{Failure, bare};

/// As many as the server makes at one time.
const AT_ONCE: usize = 8;
/// What a fork needs at least; where there is less for each, they are left out.
const MEMORY_EACH: u64 = 100 << 20;

/// Makes so many forks of one sandbox, and answers when each does.
pub(crate) async fn by_class(lab: &Lab, count: usize, figures: &mut Figures) -> Result<(), Failure> {
    for class in [IsolationClass::Container, IsolationClass::Gvisor] {
        let name = format!("{class}: fork ×{count}, until all answer");
        if available_memory()? < MEMORY_EACH * count as u64 {
            figures.leave_out(&name, "there is not memory enough for all of them".to_owned());
            continue;
        }
        let spec = || {
            let base = lab.spec();
            SandboxSpec { limits: Limits { memory_bytes: 256 << 20, disk_bytes: 128 << 20, ..base.limits.clone() }, ..base }
        };
        let Sandbox { runtime, execution, guest } = lab.create(class, &spec()).await?;
        sh(&*guest, "echo parent > ~/mark").await;
        drop(guest);
        let kind = if runtime.capabilities().snapshot_memory { SnapshotKind::Memory } else { SnapshotKind::Filesystem };
        let snapshot = SnapshotId::random();
        let start = Instant::now();
        runtime.snapshot(&execution.sandbox, &snapshot, kind).await?;
        let forks = stream::iter((0..count).map(|_| {
            let (runtime, snapshot, spec) = (&runtime, &snapshot, spec());
            async move {
                runtime.fork(snapshot, &spec).await?;
                runtime.guest(&spec.id).await?.hello().await?;
                Ok::<_, Failure>(spec.id)
            }
        }));
        let made: Vec<_> = forks.buffer_unordered(AT_ONCE).try_collect().await?;
        figures.add(&name, start);
        for id in made.iter().chain([&execution.sandbox]) {
            runtime.destroy(id).await?;
        }
        runtime.remove_snapshot(&snapshot).await?;
        lab.host.settle().await;
    }
    Ok(())
}

/// A snapshot and a fork of a disk with 20,000 files, next to a copy of the same.
pub(crate) async fn of_many_files(lab: &Lab, figures: &mut Figures) -> Result<(), Failure> {
    let Sandbox { runtime, execution, guest } = lab.sandbox(IsolationClass::Container).await;
    let made = sh(&*guest, "mkdir many && cd many && seq 20000 | split -l 1 -a 4 - f && ls | wc -l && sync").await;
    if made.stdout.trim_ascii() != b"20000" {
        return Err(format!("the files were not made: {made}").into());
    }
    drop(guest);
    let snapshot = SnapshotId::random();
    let start = Instant::now();
    let taken = runtime.snapshot(&execution.sandbox, &snapshot, SnapshotKind::Filesystem).await?;
    figures.add("container: disk of a fork, 20,000 files", start);
    figures.add_time("container: stood still, 20,000 files", taken.stood_still);
    let spec = lab.spec();
    let start = Instant::now();
    runtime.fork(&snapshot, &spec).await?;
    runtime.guest(&spec.id).await?.hello().await?;
    figures.add("container: fork until it answers, 20,000 files", start);
    let upper = lab.host.capture(&snapshot).await?.upper;
    let copy = lab.host.pool_directory().join("staging").join(format!("copy-{}", std::process::id()));
    let start = Instant::now();
    bare::copy(&upper, &copy)?;
    figures.add("cp -a: 20,000 files", start);
    std::fs::remove_dir_all(&copy)?;
    for id in [&spec.id, &execution.sandbox] {
        runtime.destroy(id).await?;
    }
    runtime.remove_snapshot(&snapshot).await?;
    Ok(())
}

fn available_memory() -> Result<u64, Failure> {
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:")).ok_or("the kernel does not say")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? << 10)
}
