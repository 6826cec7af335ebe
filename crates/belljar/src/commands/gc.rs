//! `belljar gc`: makes room.

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::{progress, screen, units};

/// Remove layers that no template, no sandbox and no snapshot refers to
///
/// Needs a key with the scope `admin`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar gc --dry-run")]
pub(crate) struct Arguments {
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let cleaned = progress::waiting("cleaning up", client.clean_up(arguments.dry_run)).await.map_err(CommandError::asked("clean up"))?;
    if arguments.remote.json {
        return Ok(screen::json(&cleaned)?);
    }
    let verb = if cleaned.dry_run { "would remove" } else { "removed" };
    let noun = if cleaned.layers.len() == 1 { "layer" } else { "layers" };
    Ok(screen::line(&format!("{verb} {} {noun}, {}", cleaned.layers.len(), units::size(cleaned.bytes)))?)
}
