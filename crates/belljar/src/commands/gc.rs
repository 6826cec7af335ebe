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
    /// Remove also volumes and snapshots on the host that the store does not know, because another store was put in place
    #[arg(long)]
    orphans: bool,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let cleaning = async {
        if arguments.orphans { client.clean_up_orphans(arguments.dry_run).await } else { client.clean_up(arguments.dry_run).await }
    };
    let cleaned = progress::waiting("cleaning up", cleaning).await.map_err(CommandError::asked("clean up"))?;
    if arguments.remote.json {
        return Ok(screen::json(&cleaned)?);
    }
    let verb = if cleaned.dry_run { "would remove" } else { "removed" };
    screen::line(&format!("{verb} {}, {}", counted(cleaned.layers.len(), "layer"), units::size(cleaned.bytes)))?;
    let orphans = [(&cleaned.orphaned_volumes, "volume"), (&cleaned.orphaned_snapshots, "snapshot")];
    for (ids, noun) in orphans.into_iter().filter(|(ids, _)| !ids.is_empty()) {
        let (what, ids) = (counted(ids.len(), noun), screen::safe(&ids.join(" ")));
        if arguments.orphans {
            screen::line(&format!("{verb} {what} that the store does not know: {ids}"))?;
        } else {
            screen::remark(&format!("the store does not know {what} that this host has; left, --orphans removes them: {ids}"));
        }
    }
    Ok(())
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
