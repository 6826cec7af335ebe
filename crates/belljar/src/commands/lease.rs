//! `belljar lease`: how long a sandbox goes on living.

use std::time::Duration;

use belljar_types::SandboxId;

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::{moments, screen, units};

/// Set how long a sandbox lives from now on
///
/// When its lease has run out, a sandbox is ended with everything in it.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  belljar lease sk3v9m2x8c7p4q6w5z2n 1h
  belljar lease sk3v9m2x8c7p4q6w5z2n 10m --at-least")]
pub(crate) struct Arguments {
    /// Id of the sandbox
    sandbox: SandboxId,
    /// How long from now, as in 30m
    #[arg(value_parser = units::parse_duration)]
    time: Duration,
    /// Never shorten: if it already ends later, nothing changes
    #[arg(long)]
    at_least: bool,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let changed = client.set_lease(&arguments.sandbox, arguments.time.as_secs(), arguments.at_least).await;
    let sandbox = changed.map_err(CommandError::asked(format!("set the lease of sandbox {}", arguments.sandbox)))?;
    if arguments.remote.json {
        screen::json(&sandbox)?;
    } else {
        let ends = sandbox.expires_at.as_deref().map_or_else(|| "never".to_owned(), moments::relative);
        screen::line(&format!("{} ends {}", sandbox.id, screen::safe(&ends)))?;
    }
    Ok(())
}
