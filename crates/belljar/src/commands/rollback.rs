//! `belljar rollback`: a sandbox goes back to one of its snapshots.

use belljar_types::SandboxId;

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::{progress, screen};

/// Put a sandbox back to one of its own snapshots
///
/// What it did since is gone; it runs afterwards. A snapshot of another sandbox is forked instead.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar rollback sk3v9m2x8c7p4q6w5z2n before-upgrade")]
pub(crate) struct Arguments {
    /// Id of the sandbox
    sandbox: SandboxId,
    /// Id or name of the snapshot
    snapshot: String,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let back = progress::waiting("rolling back", client.roll_back(&arguments.sandbox, &arguments.snapshot)).await;
    let sandbox = back.map_err(CommandError::asked(format!("roll sandbox {} back", arguments.sandbox)))?;
    if arguments.remote.json {
        return Ok(screen::json(&sandbox)?);
    }
    Ok(screen::line(&format!("{} {}", sandbox.id, sandbox.state))?)
}
