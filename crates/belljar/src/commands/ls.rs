//! `belljar ls`: the sandboxes of a project.

use belljar_client::{ListSandboxes, SandboxView};
use belljar_types::SandboxState;

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::screen::{self, Table};
use crate::{moments, units};

/// List sandboxes, newest first
///
/// Shows those that have not ended, unless --all or --state says otherwise. With --json, one JSON document a line.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  belljar ls
  belljar ls --all --meta task=42
  belljar ls -q | xargs belljar kill")]
pub(crate) struct Arguments {
    /// Those that have ended, too
    #[arg(long, short)]
    all: bool,
    /// Print ids only
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
    /// Only those in this state (creating, running, stopped, failed …); may be repeated
    #[arg(long = "state", value_name = "STATE")]
    states: Vec<SandboxState>,
    /// Only those with this metadata; may be repeated
    #[arg(long = "meta", value_name = "NAME=VALUE", value_parser = units::parse_pair)]
    metadata: Vec<(String, String)>,
    /// Only those made from this template
    #[arg(long, value_name = "NAME")]
    template: Option<String>,
    /// At most this many
    #[arg(long, value_name = "NUMBER")]
    limit: Option<usize>,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let states = match (arguments.states.is_empty(), arguments.all) {
        (false, _) => arguments.states,
        (true, true) => Vec::new(),
        (true, false) => live_states(),
    };
    let mut which = ListSandboxes { states, metadata: arguments.metadata, template: arguments.template, ..ListSandboxes::default() };
    let mut table = Table::new(["ID", "STATE", "ISOLATION", "TEMPLATE", "AGE", "ENDS", "METADATA"]);
    let mut left = arguments.limit.unwrap_or(usize::MAX);
    while left > 0 {
        which.limit = Some(u32::try_from(left).unwrap_or(1000).min(1000));
        let page = client.sandboxes(&which).await.map_err(CommandError::asked("list sandboxes"))?;
        left = left.saturating_sub(page.sandboxes.len());
        for sandbox in &page.sandboxes {
            if arguments.remote.json {
                screen::json_line(sandbox)?;
            } else if arguments.quiet {
                screen::line(sandbox.id.as_str())?;
            } else {
                table.row(cells(sandbox));
            }
        }
        match page.next_cursor {
            Some(cursor) => which.cursor = Some(cursor),
            None => break,
        }
    }
    if !arguments.remote.json && !arguments.quiet {
        table.print()?;
    }
    Ok(())
}

/// Every state that something can follow.
pub(crate) fn live_states() -> Vec<SandboxState> {
    SandboxState::ALL.into_iter().filter(|state| !state.has_ended()).collect()
}

fn cells(sandbox: &SandboxView) -> [String; 7] {
    let metadata: Vec<String> = sandbox.metadata.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let ends = match (&sandbox.end, &sandbox.expires_at) {
        (Some(end), _) => end.cause.clone(),
        (None, Some(expires)) => moments::relative(expires),
        (None, None) => "never".to_owned(),
    };
    let age = moments::relative(&sandbox.created_at);
    [
        sandbox.id.to_string(),
        sandbox.state.to_string(),
        sandbox.isolation.clone(),
        sandbox.template.clone(),
        age.strip_suffix(" ago").unwrap_or(&age).to_owned(),
        ends,
        metadata.join(" "),
    ]
}
