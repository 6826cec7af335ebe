//! `belljar pause`: a sandbox stands still until it is wanted again.

use belljar_types::{PauseKind, SandboxId};

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::screen;

/// Stop a sandbox where it stands, to go on later
///
/// It uses no processor, and its lease does not run, until `belljar resume`. Its processes go on where they stood: from disk on the gvisor class,
/// from the host's memory on the container class and with --standby.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  belljar pause sk3v9m2x8c7p4q6w5z2n
  belljar pause sk3v9m2x8c7p4q6w5z2n --standby
  belljar pause sk3v9m2x8c7p4q6w5z2n --files-only")]
pub(crate) struct Arguments {
    /// Id of the sandbox
    sandbox: SandboxId,
    /// End its processes and keep only its files; it boots anew when resumed
    #[arg(long)]
    files_only: bool,
    /// Keep its processes in the host's memory on every class: it goes on within milliseconds, and frees nothing but the processor
    #[arg(long, conflicts_with = "files_only")]
    standby: bool,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let kind = match (arguments.files_only, arguments.standby) {
        (true, _) => PauseKind::Filesystem,
        (_, true) => PauseKind::Standby,
        _ => PauseKind::Memory,
    };
    let paused = client.pause_sandbox(&arguments.sandbox, kind).await;
    let sandbox = paused.map_err(CommandError::asked(format!("pause sandbox {}", arguments.sandbox)))?;
    if arguments.remote.json {
        screen::json(&sandbox)?;
        return Ok(());
    }
    let memory = sandbox.pause.as_ref().map_or("unknown", |pause| pause.memory.as_str());
    screen::line(&format!("{} {} (memory: {})", sandbox.id, sandbox.state, screen::safe(memory)))?;
    Ok(())
}
