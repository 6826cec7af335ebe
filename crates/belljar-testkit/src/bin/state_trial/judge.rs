//! Whoever comes after a maker that was shot: the sandbox goes on, every promised snapshot opens with what it held, every layer that is needed is whole, and nothing is left over.

use std::collections::BTreeSet;

use belljar_ports::{Guest, Presence, Runtime, SnapshotKind, Templates};
use belljar_testkit::{Census, Lab, sh};
use belljar_types::{ExecutionId, IsolationClass, LayerDigest, ProcessId, SandboxId};

use crate::{Failure, KEEPER, layers_of};

pub(crate) async fn judge(class: IsolationClass, id: &SandboxId, promised: &[&str]) -> Result<(), Failure> {
    let lab = Lab::open().await?;
    let runtime = lab.runtime(class);
    goes_on(&*runtime, id).await?;
    let (store, catalog) = layers_of(&lab)?;
    // Whatever nobody needs may go at once; what is promised must open afterwards.
    catalog.sweep(&lab.host.layers_in_use().await?, false).await?;
    let listed = runtime.snapshots().await?;
    for promised in promised {
        if !listed.iter().any(|listed| listed.id.as_str() == *promised) {
            return Err(format!("snapshot {promised} was promised and is not there").into());
        }
    }
    for snapshot in listed {
        if snapshot.layers.len() > lab.template.layers.len() + 1 {
            return Err(format!("a snapshot stands on {} layers: a chain has grown", snapshot.layers.len()).into());
        }
        for layer in snapshot.layers.iter().filter(|layer| !lab.template.layers.contains(layer)) {
            store.verify(layer)?;
        }
        let spec = lab.spec();
        runtime.fork(&snapshot.id, &spec).await?;
        let guest = runtime.guest(&spec.id).await?;
        expect_marker(&*guest).await?;
        if snapshot.kind == SnapshotKind::Memory && !has_keeper(&*guest).await? {
            return Err("a fork with memory is without its parent's process".into());
        }
    }
    lab.clear().await?;
    catalog.sweep(&lab.host.layers_in_use().await?, false).await?;
    let left: BTreeSet<LayerDigest> = store.layers()?.into_iter().map(|layer| layer.digest).collect();
    if !lab.template.layers.iter().all(|layer| left.contains(layer)) {
        return Err("a sweep took a layer of the template".into());
    }
    println!("{}", serde_json::to_string(&(left.len(), Census::take(&lab.scope())))?);
    Ok(())
}

/// It runs or is paused, as it was or as it was about to be, and has its files.
async fn goes_on(runtime: &dyn Runtime, id: &SandboxId) -> Result<(), Failure> {
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
    expect_marker(&*runtime.guest(id).await?).await
}

async fn expect_marker(guest: &dyn Guest) -> Result<(), Failure> {
    let marker = sh(guest, "cat marker").await;
    if marker.stdout == b"good\n" { Ok(()) } else { Err(format!("the marker is {marker}").into()) }
}

async fn has_keeper(guest: &dyn Guest) -> Result<bool, Failure> {
    let keeper: ProcessId = KEEPER.parse()?;
    Ok(guest.processes().await?.iter().any(|process| process.id == keeper && process.exit.is_none()))
}
