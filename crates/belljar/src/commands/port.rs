//! `belljar port`: programs that listen in a sandbox.

use belljar_types::SandboxId;

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::screen::{self, Table};

/// List the ports that programs in a sandbox listen on
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar port sk3v9m2x8c7p4q6w5z2n")]
pub(crate) struct Arguments {
    /// Id of the sandbox
    sandbox: SandboxId,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let ports =
        client.ports(&arguments.sandbox).await.map_err(CommandError::asked(format!("list ports of sandbox {}", arguments.sandbox)))?;
    if arguments.remote.json {
        return Ok(screen::json(&ports)?);
    }
    let mut table = Table::new(["PORT", "ADDRESS", "PID"]);
    for port in ports {
        table.row([port.port.to_string(), port.address, port.pid.map_or_else(|| "?".to_owned(), |pid| pid.to_string())]);
    }
    Ok(table.print()?)
}
