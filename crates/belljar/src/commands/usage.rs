//! `belljar usage`: what a sandbox used, as the host counts it; and what a project or a key did.

use std::time::Duration;

use belljar_client::{Client, Consumed, ConsumedByAll};
use belljar_types::SandboxId;

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::screen::{Silent, Table};
use crate::{screen, units};

/// Show what a sandbox has used so far, or all sandboxes of a project or key
///
/// Without a sandbox: everything that was counted in the key's project, ended sandboxes too.
///
/// Counted by the host, so that nothing in the sandbox can change it. `belljar metrics` shows how it looks from inside.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  belljar usage sk3v9m2x8c7p4q6w5z2n\n  belljar usage --of project:team-a --since 2026-11-01T00:00:00Z --csv"
)]
pub(crate) struct Arguments {
    /// Id of a live sandbox
    #[arg(conflicts_with_all = ["of", "since", "csv"])]
    sandbox: Option<SandboxId>,
    /// Whose usage: project:NAME, key:ID or sandbox:ID
    #[arg(long, value_name = "SUBJECT")]
    of: Option<String>,
    /// Only sandboxes that were counted since this moment
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Print comma-separated values
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let Some(sandbox) = &arguments.sandbox else { return consumed(&client, &arguments).await };
    let asked = CommandError::asked(format!("measure sandbox {sandbox}"));
    let usage = client.usage(sandbox).await.map_err(asked)?;
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

const METERS: [&str; 7] = ["cpu_micros", "wall_millis", "memory_mib_seconds", "disk_bytes", "egress_bytes", "ingress_bytes", "executions"];

fn numbers(used: &Consumed) -> [String; 7] {
    [used.cpu_micros, used.wall_millis, used.memory_mib_seconds, used.disk_bytes, used.egress_bytes, used.ingress_bytes, used.executions]
        .map(|number| number.to_string())
}

async fn consumed(client: &Client, arguments: &Arguments) -> Result<(), CommandError> {
    let asked = CommandError::asked("read what was used");
    let all = client.consumed(arguments.of.as_deref(), arguments.since.as_deref()).await.map_err(asked)?;
    if arguments.remote.json {
        return Ok(screen::json(&all)?);
    }
    if arguments.csv {
        return Ok(csv(&all)?);
    }
    let mut table = Table::new(["SANDBOX", "CPU", "WALL", "MEMORY (MiB s)", "DISK", "OUT", "IN", "EXECUTIONS", "COST"]);
    let cost = |cost: &Option<String>| cost.as_ref().map_or_else(|| "-".to_owned(), |cost| screen::safe(cost));
    for one in &all.sandboxes {
        table.row(std::iter::once(one.sandbox.clone()).chain(words(&one.used)).chain([cost(&one.cost)]));
    }
    let whole = match &all.currency {
        Some(currency) => format!("{} {}", cost(&all.cost), screen::safe(currency)),
        None => cost(&all.cost),
    };
    table.row(std::iter::once("all".to_owned()).chain(words(&all.total)).chain([whole]));
    Ok(table.print()?)
}

fn words(used: &Consumed) -> [String; 7] {
    [
        units::duration(Duration::from_micros(used.cpu_micros)),
        units::duration(Duration::from_millis(used.wall_millis)),
        used.memory_mib_seconds.to_string(),
        units::size(used.disk_bytes),
        units::size(used.egress_bytes),
        units::size(used.ingress_bytes),
        used.executions.to_string(),
    ]
}

/// The same lines that the API gives.
fn csv(all: &ConsumedByAll) -> Result<(), Silent> {
    screen::line(&format!("sandbox,project,key,read_at,{},cost", METERS.join(",")))?;
    for one in &all.sandboxes {
        let (key, cost) = (one.key.as_deref().unwrap_or_default(), one.cost.as_deref().unwrap_or_default());
        let ids = [&one.sandbox, &one.project, key, &one.read_at].map(screen::safe).join(",");
        screen::line(&format!("{ids},{},{}", numbers(&one.used).join(","), screen::safe(cost)))?;
    }
    Ok(())
}
