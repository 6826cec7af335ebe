//! What the container class promises and a kernel could break, each with the way to find out.

use std::error::Error;
use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

use belljar_ports::{Runtime, RuntimeError};
use belljar_types::{ExitStatus, KillCause, Termination};

use crate::scene::{Scene, sh, sh_in};

pub(crate) type Broken = Box<dyn Error>;
pub(crate) type Kept = Result<(), Broken>;

/// A file that must never be reached: what is written to it is a command to the machine.
const COMMANDS: &str = "/proc/sysrq-trigger";
const PILE: usize = 100;

pub(crate) async fn output(scene: &Scene) -> Kept {
    let ran = sh_in(scene, &scene.spec(), "echo out; echo err >&2; exit 7").await?;
    is((ran.stdout.as_slice(), ran.stderr.as_slice()), (b"out\n", b"err\n"))?;
    is(ran.exit, ExitStatus { termination: Termination::Exited(7), cause: None })
}

pub(crate) async fn masks(scene: &Scene) -> Kept {
    hold(Path::new(COMMANDS).exists(), || format!("this kernel has no {COMMANDS} to mask"))?;
    let script = format!("cat /proc/self/mountinfo; stat -c 'device %t:%T' {COMMANDS}; echo h > {COMMANDS}; echo done");
    let ran = sh_in(scene, &scene.spec(), &script).await?;
    let words = String::from_utf8_lossy(&ran.stdout);
    hold(words.ends_with("device 1:3\ndone\n"), || format!("not the null device: {words}"))?;
    let host = [&*scene.data_dir.to_string_lossy(), "pool", "layers", "/sandboxes", "/dev/loop", "btrfs", "belljar-"].map(str::to_owned);
    match host.iter().find(|trace| words.contains(trace.as_str())) {
        Some(trace) => Err(format!("{trace} in {words}").into()),
        None => Ok(()),
    }
}

pub(crate) async fn files(scene: &Scene) -> Kept {
    let script =
        "echo changed >> /lower/file && mv /lower /moved && cat /moved/file && stat -c %u:%g /moved/file && rm /bin/wc && ls / /bin";
    let ran = sh_in(scene, &scene.spec(), script).await?;
    let words = String::from_utf8_lossy(&ran.stdout);
    hold(words.starts_with("lower\nchanged\n0:0\n"), || format!("{ran}"))?;
    hold(!words.lines().skip(3).any(|name| matches!(name, "lower" | "wc")), || format!("{ran}"))?;
    let ran = sh_in(scene, &scene.spec(), "cat /lower/file && ls /bin/wc").await?;
    is(ran.stdout.as_slice(), b"lower\n/bin/wc\n")
}

pub(crate) async fn memory(scene: &Scene) -> Kept {
    let spec = scene.spec();
    scene.runtime.create(&spec).await?;
    let outcome = async {
        let guest = scene.runtime.guest(&spec.id).await?;
        let ran = sh(&*guest, "exec tail /dev/zero").await?;
        is(ran.exit, ExitStatus { termination: Termination::Signaled(9), cause: Some(KillCause::OutOfMemory) })?;
        hold(scene.runtime.usage(&spec.id).await?.oom_kills > 0, || "the kernel counted no kill".to_owned())?;
        is(sh(&*guest, "echo alive").await?.stdout.as_slice(), b"alive\n")
    };
    let outcome = outcome.await;
    scene.runtime.destroy(&spec.id).await?;
    outcome
}

pub(crate) async fn pids(scene: &Scene) -> Kept {
    let spec = scene.spec();
    scene.runtime.create(&spec).await?;
    let outcome = async {
        let guest = scene.runtime.guest(&spec.id).await?;
        // The shell gives up at the first fork that fails, and never says that it was done.
        let forks = "i=0; while [ $i -lt 80 ]; do sleep 1000 >/dev/null 2>&1 & i=$((i+1)); done; echo all";
        let ran = sh(&*guest, forks).await?;
        hold(ran.stdout.is_empty() && ran.exit.termination != Termination::Exited(0), || format!("80 forks went through: {ran}"))?;
        let pids = scene.runtime.usage(&spec.id).await?.pids;
        hold(pids <= spec.limits.pids, || format!("{pids} processes"))
    };
    let outcome = outcome.await;
    scene.runtime.destroy(&spec.id).await?;
    outcome
}

pub(crate) async fn layers(scene: &Scene) -> Kept {
    let mut spec = scene.spec();
    spec.layers = scene.pile(PILE)?;
    let ran = sh_in(scene, &spec, "ls /pile | wc -l; cat /top; cat /proc/self/mountinfo").await?;
    let words = String::from_utf8_lossy(&ran.stdout);
    hold(words.starts_with(&format!("{PILE}\n{}", PILE - 1)), || format!("{ran}"))
}

pub(crate) async fn called_off(scene: &Scene) -> Kept {
    let spec = scene.spec();
    let made = tokio::time::timeout(Duration::ZERO, scene.runtime.create(&spec)).await;
    hold(made.is_err(), || "it was made in no time".to_owned())?;
    scene.runtime.destroy(&spec.id).await?;
    hold(scene.host.record(&spec.id).await?.is_none(), || "its record is still there".to_owned())?;
    match scene.runtime.guest(&spec.id).await {
        Err(RuntimeError::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => Err("it runs".into()),
    }
}

fn hold(holds: bool, otherwise: impl FnOnce() -> String) -> Kept {
    if holds { Ok(()) } else { Err(otherwise().into()) }
}

fn is<T: PartialEq + Debug + Copy>(found: T, expected: T) -> Kept {
    hold(found == expected, || format!("expected {expected:?}, found {found:?}"))
}
