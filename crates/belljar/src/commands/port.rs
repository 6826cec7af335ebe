//! `belljar port`: programs that listen in a sandbox, and a way to them from this machine.

mod forward;

use belljar_types::SandboxId;

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::screen::{self, Table};

/// List the ports that programs in a sandbox listen on, or forward one
///
/// With a port, listens on 127.0.0.1 here and passes HTTP requests on to that port in the sandbox, WebSockets included, until it is ended
/// with Ctrl-C. Prints the address to open. Whoever can connect to this machine's loopback can use it.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  belljar exec --detach $S -- python3 -m http.server 8000
  belljar port $S
  belljar port $S 8000
  belljar port $S 8000 --local 9000")]
pub(crate) struct Arguments {
    /// Id of the sandbox
    sandbox: SandboxId,
    /// The port in the sandbox to forward
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// The port on this machine [default: the same if it is free, else any]
    #[arg(long, value_name = "PORT", requires = "port")]
    local: Option<u16>,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let attempt = CommandError::asked(format!("find the ports of sandbox {}", arguments.sandbox));
    let ports = client.ports(&arguments.sandbox).await.map_err(attempt)?;
    if let Some(port) = arguments.port {
        if !ports.iter().any(|listening| listening.port == port) {
            screen::remark(&format!("belljar: nothing listens on port {port} in the sandbox yet"));
        }
        return forward::run(client, arguments.sandbox, port, arguments.local, arguments.remote.json).await;
    }
    if arguments.remote.json {
        return Ok(screen::json(&ports)?);
    }
    let mut table = Table::new(["PORT", "ADDRESS", "PID"]);
    for port in ports {
        table.row([port.port.to_string(), port.address, port.pid.map_or_else(|| "?".to_owned(), |pid| pid.to_string())]);
    }
    Ok(table.print()?)
}
