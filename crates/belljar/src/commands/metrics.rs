//! `belljar metrics`: how a sandbox looks from inside, or how the server is.

use std::io::Write;

use belljar_client::Client;
use belljar_types::SandboxId;
use futures_util::TryStreamExt;

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::screen::{self, Silent};
use crate::units;

/// Show how a sandbox looks from inside, or the server's own counters
///
/// With a sandbox: processors, memory and disk as a program in it sees them. Without: the server's counters in Prometheus' text form
/// (needs a key with the scope `admin`).
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  belljar metrics sk3v9m2x8c7p4q6w5z2n
  belljar metrics | grep sandboxes")]
pub(crate) struct Arguments {
    /// Id of the sandbox
    sandbox: Option<SandboxId>,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let Some(sandbox) = arguments.sandbox else {
        return server(&client, arguments.remote.json).await;
    };
    let metrics = client.guest_metrics(&sandbox).await.map_err(CommandError::asked(format!("look into sandbox {sandbox}")))?;
    if arguments.remote.json {
        return Ok(screen::json(&metrics)?);
    }
    Ok(screen::pairs(&[
        ("processors", metrics.cpus.to_string()),
        ("cpu time", format!("{}.{:03}s", metrics.cpu_micros / 1_000_000, metrics.cpu_micros / 1000 % 1000)),
        ("memory", format!("{} of {}", units::size(metrics.memory_used_bytes), units::size(metrics.memory_total_bytes))),
        ("disk", format!("{} of {}", units::size(metrics.disk_used_bytes), units::size(metrics.disk_total_bytes))),
        ("processes", metrics.processes.to_string()),
    ])?)
}

async fn server(client: &Client, json: bool) -> Result<(), CommandError> {
    let attempt = || CommandError::asked("read the server's counters");
    if json {
        return Err(CommandError::Usage {
            what: "the server's counters are in Prometheus' text form, not JSON".to_owned(),
            hint: "leave out --json, or name a sandbox",
        });
    }
    let mut pieces = std::pin::pin!(client.server_metrics().await.map_err(attempt())?);
    while let Some(piece) = pieces.try_next().await.map_err(attempt())? {
        std::io::stdout().lock().write_all(&piece).map_err(|source| Silent { source })?;
    }
    Ok(())
}
