//! `belljar fork`: copies of a sandbox, or sandboxes from a snapshot.

use std::time::Duration;

use belljar_client::NewForks;
use belljar_types::SandboxId;

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::{progress, screen, units};

/// Make copies of a sandbox, or sandboxes from a snapshot, and print their ids
///
/// Of a running or paused sandbox, with its memory where its class can keep that; it stands still once, however many are made. Without --all-or-nothing
/// each is made or fails by itself, and the command ends with 1 if any failed.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  belljar fork sk3v9m2x8c7p4q6w5z2n --count 20
  belljar fork --snapshot before-upgrade --meta branch=a --lease 1h")]
pub(crate) struct Arguments {
    /// Id of the sandbox
    #[arg(required_unless_present = "snapshot", conflicts_with = "snapshot")]
    sandbox: Option<SandboxId>,
    /// From this snapshot instead, by its id or name
    #[arg(long, value_name = "SNAPSHOT")]
    snapshot: Option<String>,
    /// How many, up to 100
    #[arg(long, short = 'n', value_name = "NUMBER", default_value_t = 1)]
    count: u32,
    /// Make all of them or none
    #[arg(long)]
    all_or_nothing: bool,
    /// How long each lives from now on, as in 1h [default: the server's]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    lease: Option<Duration>,
    /// Your own words about them, in place of their origin's; may be repeated
    #[arg(long = "meta", value_name = "NAME=VALUE", value_parser = units::parse_pair)]
    metadata: Vec<(String, String)>,
    /// Variable for every process that is started in them; may be repeated
    #[arg(long, short, value_name = "NAME=VALUE", value_parser = units::parse_pair)]
    env: Vec<(String, String)>,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let request = NewForks {
        count: arguments.count,
        all_or_nothing: arguments.all_or_nothing,
        env: arguments.env.into_iter().collect(),
        metadata: (!arguments.metadata.is_empty()).then(|| arguments.metadata.into_iter().collect()),
        lease_seconds: arguments.lease.map(|lease| lease.as_secs()),
    };
    let asked = async {
        match (&arguments.sandbox, &arguments.snapshot) {
            (Some(sandbox), _) => client.fork_sandbox(sandbox, &request).await,
            (None, snapshot) => client.fork_snapshot(snapshot.as_deref().unwrap_or_default(), &request).await,
        }
    };
    let forks = progress::waiting("making forks", asked).await.map_err(CommandError::asked("fork"))?;
    let mut failed = 0;
    for fork in &forks {
        if arguments.remote.json {
            screen::json_line(fork)?;
        } else if let Some(sandbox) = &fork.sandbox {
            screen::line(sandbox.id.as_str())?;
        }
        if let Some(error) = &fork.error {
            failed += 1;
            screen::remark(&format!("a fork was not made: {}", screen::safe(&error.detail)));
        }
    }
    if failed == 0 { Ok(()) } else { Err(CommandError::Refused(format!("{failed} of {} forks were not made", forks.len()))) }
}
