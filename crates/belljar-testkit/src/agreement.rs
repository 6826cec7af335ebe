//! Whether a server's list, the disk below it and its next sweep tell the same: what one of them has and another has not is half.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

use belljar_client::{Client, ListSandboxes, ListSnapshots, SandboxView};
use belljar_types::SandboxState;

use crate::ServerProcess;

/// How long what was under way may take to be done or undone.
const SETTLING: u32 = 600;

/// Waits until everything agrees, and says what does not if it never does. Removals go on behind the answers that announce them.
pub async fn agreement(server: &ServerProcess) -> Result<(), String> {
    let client = server.client();
    let mut found = look(server, &client).await;
    for _ in 0..SETTLING {
        if found.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        found = look(server, &client).await;
    }
    found
}

async fn look(server: &ServerProcess, client: &Client) -> Result<(), String> {
    let data_dir = &server.scope.data_dir;
    let states: Vec<SandboxState> = SandboxState::ALL.into_iter().filter(|state| !state.has_ended()).collect();
    let which = ListSandboxes { states, limit: Some(1000), ..ListSandboxes::default() };
    let listed = client.sandboxes(&which).await.map_err(|error| format!("{error:?}"))?.sandboxes;
    let ids: BTreeSet<String> = listed.iter().map(|sandbox| sandbox.id.to_string()).collect();
    same("sandboxes on the host", &names(&data_dir.join("sandboxes")), &ids)?;
    same("disks of sandboxes", &names(&data_dir.join("pool/sandboxes")), &ids)?;
    if let Some(half) = listed.iter().find(|sandbox| !matches!(sandbox.state, SandboxState::Running | SandboxState::Paused)) {
        return Err(format!("{half:?} is on its way and nobody does anything"));
    }
    let is_on_disk = |sandbox: &&SandboxView| sandbox.pause.as_ref().is_some_and(|pause| pause.memory == "on-disk");
    let paused: BTreeSet<String> = listed.iter().filter(is_on_disk).map(|sandbox| sandbox.id.to_string()).collect();
    same("images of paused sandboxes", &names(&data_dir.join("pool/paused")), &paused)?;
    let which = ListSnapshots { limit: Some(1000), ..ListSnapshots::default() };
    let listed = client.snapshots(&which).await.map_err(|error| format!("{error:?}"))?.snapshots;
    let ids: BTreeSet<String> = listed.into_iter().map(|snapshot| snapshot.id).collect();
    same("records of snapshots", &names(&data_dir.join("snapshots")), &ids)?;
    same("snapshots in the pool", &names(&data_dir.join("pool/snapshots")), &ids)?;
    same("half-made layers", &names(&data_dir.join("pool/staging")), &BTreeSet::new())?;
    let unused = client.clean_up(true).await.map_err(|error| format!("{error:?}"))?.layers;
    same("layers that a sweep would remove", &unused, &Vec::new())
}

fn same<T: PartialEq + Debug>(what: &str, found: &T, listed: &T) -> Result<(), String> {
    if found == listed { Ok(()) } else { Err(format!("{what}: {found:?}, and the server lists {listed:?}")) }
}

fn names(directory: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
