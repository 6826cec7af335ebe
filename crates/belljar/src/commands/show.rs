//! `belljar show`: everything about one sandbox.

use belljar_client::{Process, SandboxView};
use belljar_types::{SandboxId, SandboxState};

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::screen::{self, Table};
use crate::{moments, units};

/// Show all about a sandbox, and the processes in it
///
/// Processes are those started by `belljar exec`, `belljar shell` and the API. With --json, the sandbox as one document with its
/// processes in `processes`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar show sk3v9m2x8c7p4q6w5z2n")]
pub(crate) struct Arguments {
    /// Id of the sandbox
    sandbox: SandboxId,
    #[command(flatten)]
    remote: Remote,
}

#[derive(serde::Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    sandbox: &'a SandboxView,
    processes: &'a [Process],
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let asked = || CommandError::asked(format!("show sandbox {}", arguments.sandbox));
    let sandbox = client.sandbox(&arguments.sandbox).await.map_err(asked())?;
    let processes = match sandbox.state {
        SandboxState::Running => client.processes(&sandbox.id).await.map_err(asked())?,
        _ => Vec::new(),
    };
    if arguments.remote.json {
        return Ok(screen::json(&Shown { sandbox: &sandbox, processes: &processes })?);
    }
    screen::pairs(&lines(&sandbox))?;
    if !processes.is_empty() {
        screen::line("")?;
        let mut table = Table::new(["PROCESS", "STATE", "USER", "AGE", "COMMAND"]);
        for process in &processes {
            table.row(cells(process));
        }
        table.print()?;
    }
    Ok(())
}

fn lines(sandbox: &SandboxView) -> Vec<(&'static str, String)> {
    let limits = &sandbox.limits;
    let mut lines = vec![
        ("id", sandbox.id.to_string()),
        ("state", sandbox.state.to_string()),
        ("isolation", format!("{} ({})", sandbox.isolation, sandbox.isolation_reason)),
        ("template", sandbox.template.clone()),
        ("project", sandbox.project.clone()),
        (
            "limits",
            format!(
                "cpu {}, memory {}, disk {}, processes {}",
                units::cores(limits.cpu_millis.into()),
                units::size(limits.memory_bytes),
                units::size(limits.disk_bytes),
                limits.pids
            ),
        ),
        ("network", sandbox.network.clone()),
        ("root", if sandbox.privilege == "user-only" { "refused" } else { "allowed" }.to_owned()),
        ("created", moments::relative(&sandbox.created_at)),
    ];
    let mut optional = |name, value: Option<String>| lines.extend(value.map(|value| (name, value)));
    let expires = sandbox.end.is_none().then(|| sandbox.expires_at.as_deref().map_or_else(|| "never".to_owned(), moments::relative));
    optional("ends", expires);
    optional("idle timeout", sandbox.idle_timeout_seconds.map(|seconds| units::duration(std::time::Duration::from_secs(seconds))));
    optional("wall time", limits.wall_time_seconds.map(|seconds| units::duration(std::time::Duration::from_secs(seconds))));
    optional("host name", sandbox.hostname.clone());
    optional("environment", (!sandbox.env.is_empty()).then(|| sandbox.env.join(" ")));
    let metadata: Vec<String> = sandbox.metadata.iter().map(|(name, value)| format!("{name}={value}")).collect();
    optional("metadata", (!metadata.is_empty()).then(|| metadata.join(" ")));
    let volumes: Vec<String> = sandbox.volumes.iter().map(|mount| format!("{}:{} ({})", mount.volume, mount.path, mount.mode)).collect();
    optional("volumes", (!volumes.is_empty()).then(|| volumes.join(" ")));
    let origin = sandbox.origin.as_ref();
    optional(
        "copy of",
        origin.map(|origin| {
            origin
                .snapshot
                .as_ref()
                .map_or_else(|| origin.sandbox.clone(), |snapshot| format!("{}, by snapshot {snapshot}", origin.sandbox))
        }),
    );
    optional("ended", sandbox.end.as_ref().map(|end| format!("{}: {}, {}", end.cause, end.detail, moments::relative(&end.at))));
    lines
}

fn cells(process: &Process) -> [String; 5] {
    let state = match process.exit.as_ref() {
        None => process.state.clone(),
        Some(exit) => match (exit.exit_code, exit.signal) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => process.state.clone(),
        },
    };
    let age = moments::relative(&process.started_at);
    [process.id.to_string(), state, process.user.clone(), age.strip_suffix(" ago").unwrap_or(&age).to_owned(), process.argv.join(" ")]
}
