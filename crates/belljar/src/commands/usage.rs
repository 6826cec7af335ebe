//! `belljar usage`: what a sandbox used, as the host counts it.

use belljar_types::SandboxId;

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::{screen, units};

/// Show what a sandbox has used so far
///
/// Counted by the host, so that nothing in the sandbox can change it. `belljar metrics` shows how it looks from inside.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar usage sk3v9m2x8c7p4q6w5z2n")]
pub(crate) struct Arguments {
    /// Id of the sandbox
    sandbox: SandboxId,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let asked = CommandError::asked(format!("measure sandbox {}", arguments.sandbox));
    let usage = client.usage(&arguments.sandbox).await.map_err(asked)?;
    if arguments.remote.json {
        return Ok(screen::json(&usage)?);
    }
    Ok(screen::pairs(&[
        ("cpu time", format!("{}.{:03}s", usage.cpu_micros / 1_000_000, usage.cpu_micros / 1000 % 1000)),
        ("memory", format!("{} (at most {})", units::size(usage.memory_bytes), units::size(usage.memory_peak_bytes))),
        ("disk", units::size(usage.disk_bytes)),
        ("processes", usage.pids.to_string()),
        ("killed for memory", usage.oom_kills.to_string()),
    ])?)
}
