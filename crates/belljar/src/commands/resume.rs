//! `belljar resume`: a paused sandbox goes on.

use std::time::Duration;

use belljar_types::SandboxId;

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::{moments, screen, units};

/// Let a paused sandbox go on
///
/// Its processes and their output are where they were; connections were cut by the pause. A sandbox that runs is left as it is.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  belljar resume sk3v9m2x8c7p4q6w5z2n
  belljar resume sk3v9m2x8c7p4q6w5z2n --lease 1h")]
pub(crate) struct Arguments {
    /// Id of the sandbox
    sandbox: SandboxId,
    /// How long it lives from now on, as in 1h [default: what was left of its lease]
    #[arg(long, value_parser = units::parse_duration)]
    lease: Option<Duration>,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let resumed = client.resume_sandbox(&arguments.sandbox, arguments.lease.map(|lease| lease.as_secs())).await;
    let sandbox = resumed.map_err(CommandError::asked(format!("resume sandbox {}", arguments.sandbox)))?;
    if arguments.remote.json {
        screen::json(&sandbox)?;
        return Ok(());
    }
    let ends = sandbox.expires_at.as_deref().map_or_else(|| "never".to_owned(), moments::relative);
    screen::line(&format!("{} {}, ends {}", sandbox.id, sandbox.state, screen::safe(&ends)))?;
    Ok(())
}
