//! Drives pauses, snapshots, forks and roll-backs from outside, for the suite that must kill whoever does them.
//!
//! `state_trial make CLASS` says what it has and what it was promised until it is killed; `state_trial judge CLASS SANDBOX [SNAPSHOT …]` comes after it, holds the
//! promises against what is there, removes everything and prints a census.
#![allow(clippy::print_stdout, reason = "the suite reads what it prints")]

use std::io::Write;

use belljar_ports::{Guest, Presence, SnapshotKind};
use belljar_testkit::{Census, Lab, Sandbox, block_on, sh};
use belljar_types::{ExecutionId, IsolationClass, ProcessId, ProcessSpec, SandboxId, SnapshotId};

type Failure = Box<dyn std::error::Error>;

/// A process that is to be there as long as memory is.
const KEEPER: &str = "keeper";

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    block_on(async {
        match arguments[..] {
            ["make", class] => make(class_of(class)?).await,
            ["judge", class, sandbox, ref snapshots @ ..] => judge(class_of(class)?, &sandbox.parse()?, snapshots).await,
            _ => Err("usage: state_trial make CLASS | judge CLASS SANDBOX [SNAPSHOT …]".into()),
        }
    })
}

fn class_of(name: &str) -> Result<IsolationClass, Failure> {
    match name {
        "container" => Ok(IsolationClass::Container),
        "gvisor" => Ok(IsolationClass::Gvisor),
        other => Err(format!("no class {other}").into()),
    }
}

async fn make(class: IsolationClass) -> Result<(), Failure> {
    let lab = Lab::open().await?;
    lab.clear().await?;
    let Sandbox { runtime, guest, execution } = lab.sandbox(class).await;
    let id = execution.sandbox;
    sh(&*guest, "echo good > marker; sync").await;
    let mut keeper = ProcessSpec::new(["/bin/sleep", "100000"]);
    keeper.id = KEEPER.parse()?;
    say(&format!("sandbox {id}"));
    let memory = runtime.capabilities().snapshot_memory;
    for round in 0_u64.. {
        let kind = if memory && round.is_multiple_of(2) { SnapshotKind::Memory } else { SnapshotKind::Filesystem };
        let snapshot = SnapshotId::random();
        // A round that kept files alone has lost it.
        runtime.guest(&id).await?.start(&keeper).await?;
        runtime.snapshot(&id, &snapshot, kind).await?;
        say(&format!("promised {snapshot}"));
        let fork = lab.spec();
        runtime.fork(&snapshot, &fork).await?;
        runtime.pause(&id, kind).await?;
        say("paused");
        runtime.resume(&id, &ExecutionId::random()).await?;
        runtime.destroy(&fork.id).await?;
        runtime.rollback(&id, &snapshot, &ExecutionId::random()).await?;
        say(&format!("withdrawn {snapshot}"));
        runtime.remove_snapshot(&snapshot).await?;
    }
    Ok(())
}

async fn judge(class: IsolationClass, id: &SandboxId, promised: &[&str]) -> Result<(), Failure> {
    let lab = Lab::open().await?;
    let runtime = lab.runtime(class);
    let found = runtime.inventory().await?;
    let presence = found.iter().find(|found| found.id == *id).map(|found| found.presence.clone());
    match presence {
        Some(Presence::Running(_)) => drop(runtime.adopt(id).await?),
        Some(Presence::Paused { memory }) => {
            runtime.resume(id, &ExecutionId::random()).await?;
            if memory && !has_keeper(&*runtime.guest(id).await?).await? {
                return Err("a sandbox that was paused with its memory came back without".into());
            }
        }
        other => return Err(format!("the sandbox is neither running nor paused: {other:?}").into()),
    }
    expect_marker(&*runtime.guest(id).await?).await?;
    let listed = runtime.snapshots().await?;
    for promised in promised {
        if !listed.iter().any(|listed| listed.id.as_str() == *promised) {
            return Err(format!("snapshot {promised} was promised and is not there").into());
        }
    }
    for snapshot in listed {
        let spec = lab.spec();
        runtime.fork(&snapshot.id, &spec).await?;
        let guest = runtime.guest(&spec.id).await?;
        expect_marker(&*guest).await?;
        if snapshot.kind == SnapshotKind::Memory && !has_keeper(&*guest).await? {
            return Err("a fork with memory is without its parent's process".into());
        }
    }
    lab.clear().await?;
    println!("{}", serde_json::to_string(&Census::take(&lab.scope()))?);
    Ok(())
}

async fn expect_marker(guest: &dyn Guest) -> Result<(), Failure> {
    let marker = sh(guest, "cat marker").await;
    if marker.stdout == b"good\n" { Ok(()) } else { Err(format!("the marker is {marker}").into()) }
}

async fn has_keeper(guest: &dyn Guest) -> Result<bool, Failure> {
    let keeper: ProcessId = KEEPER.parse()?;
    Ok(guest.processes().await?.iter().any(|process| process.id == keeper && process.exit.is_none()))
}

fn say(text: &str) {
    println!("{text}");
    // The reader may be gone already; then the shot is on its way.
    let _ = std::io::stdout().flush();
}
