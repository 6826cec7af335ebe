//! States of the sandbox: kept, gone back to, copied, ended.

use rmcp::schemars::JsonSchema;
use serde::Deserialize;

use super::Outcome;
use crate::lodgings::Lodgings;

/// Keep the state of the sandbox as it is now, to go back to it with restore_checkpoint.
///
/// All its files, and running programs with their memory where the sandbox can. Cheap: take one before anything that may go wrong.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct Checkpoint {
    /// What to call it. A number when left out; a name that was used before is taken over.
    name: Option<String>,
    /// Another sandbox of this connection, by the id that fork_sandbox gave.
    sandbox: Option<String>,
}

/// Put the sandbox back to the state it had at a checkpoint; everything since is lost.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct RestoreCheckpoint {
    /// The checkpoint, as checkpoint called it.
    name: String,
    /// Another sandbox of this connection, by the id that fork_sandbox gave.
    sandbox: Option<String>,
}

/// Make a copy of the sandbox as it is now, to try something beside it.
///
/// Gives an id, to be passed as `sandbox` to the other tools. Neither sees what happens in the other.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct ForkSandbox {
    /// Another sandbox of this connection, by the id that fork_sandbox gave, if that is to be copied.
    sandbox: Option<String>,
}

/// End a sandbox, with all its files, programs and checkpoints.
///
/// Without an id, the one that all tools work in; the next call then begins in a fresh one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct EndSandbox {
    /// Another sandbox of this connection, by the id that fork_sandbox gave.
    sandbox: Option<String>,
}

pub(super) async fn checkpoint(lodgings: &Lodgings, asked: Checkpoint) -> Outcome {
    let sandbox = lodgings.find(asked.sandbox.as_deref()).await?;
    let (name, taken) = lodgings.checkpoint(&sandbox, asked.name).await?;
    let what = if taken.kind == "memory" { "files and running programs" } else { "files; programs that run are not in it" };
    let until = taken.expires_at.map_or_else(String::new, |at| format!(", kept until {at}"));
    Ok(super::words(format!("[{name}: {what}{until}]")))
}

pub(super) async fn restore(lodgings: &Lodgings, asked: RestoreCheckpoint) -> Outcome {
    let sandbox = lodgings.find(asked.sandbox.as_deref()).await?;
    lodgings.restore(&sandbox, &asked.name).await?;
    Ok(super::words(format!("[sandbox {sandbox} is as it was at {}]", asked.name)))
}

pub(super) async fn fork(lodgings: &Lodgings, asked: ForkSandbox) -> Outcome {
    let sandbox = lodgings.find(asked.sandbox.as_deref()).await?;
    let fork = lodgings.fork(&sandbox).await?;
    Ok(super::words(format!("{}\n[a copy of {sandbox}]", fork.id)))
}

pub(super) async fn end(lodgings: &Lodgings, asked: EndSandbox) -> Outcome {
    let sandbox = lodgings.find(asked.sandbox.as_deref()).await?;
    lodgings.end(&sandbox).await?;
    Ok(super::words(format!("[sandbox {sandbox} has ended]")))
}
