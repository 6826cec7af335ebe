//! `belljar key`: who may use the server.

use std::collections::BTreeSet;
use std::time::Duration;

use belljar_client::NewKey;
use belljar_types::Scope;

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::screen::{self, Table};
use crate::{moments, units};

/// Make, list and remove API keys (needs a key with the scope `admin`)
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Add(Add),
    Ls(Ls),
    Rm(Rm),
}

/// Make a key and print its secret
///
/// The secret is shown this once and kept nowhere. Scopes: `read` sees sandboxes, templates and usage; `use` makes, uses and ends sandboxes; `templates`
/// makes and removes templates; `admin` may do everything in every project.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  belljar key add --label ci
  BELLJAR_API_KEY=$(belljar key add --project team-a --expires 7d)")]
pub(crate) struct Add {
    /// For whom it acts
    #[arg(long, value_name = "NAME", default_value = "default")]
    project: String,
    /// What it may do: read, use, templates or admin; may be repeated
    #[arg(long = "scope", value_name = "SCOPE", default_values = ["read", "use"])]
    scopes: Vec<Scope>,
    /// What people call it
    #[arg(long, value_name = "TEXT", default_value = "")]
    label: String,
    /// How long it is good for, as in 30d [default: for ever]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    expires: Option<Duration>,
    #[command(flatten)]
    remote: Remote,
}

/// List keys, without their secrets
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar key ls --project team-a")]
pub(crate) struct Ls {
    /// Only this project's
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

/// Remove a key; it is refused from then on
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar key rm kk3v9m2x8c7p4q6w5z2n")]
pub(crate) struct Rm {
    /// Id of the key, as `belljar key ls` shows it
    #[arg(value_name = "KEY-ID")]
    key: String,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(command: Command) -> Result<(), CommandError> {
    match command {
        Command::Add(arguments) => add(arguments).await,
        Command::Ls(arguments) => list(&arguments).await,
        Command::Rm(Rm { key, remote }) => {
            remote.client()?.remove_key(&key).await.map_err(CommandError::asked("remove the key"))?;
            if remote.json { Ok(screen::json(&serde_json::json!({ "removed": key }))?) } else { Ok(screen::line(&screen::safe(&key))?) }
        }
    }
}

async fn add(arguments: Add) -> Result<(), CommandError> {
    let request = NewKey {
        project: arguments.project,
        scopes: BTreeSet::from_iter(arguments.scopes),
        label: arguments.label,
        expires_in_seconds: arguments.expires.map(|time| time.as_secs()),
    };
    let made = arguments.remote.client()?.add_key(&request).await.map_err(CommandError::asked("make a key"))?;
    if arguments.remote.json {
        return Ok(screen::json(&made)?);
    }
    screen::remark(&format!(
        "key {} of project {} may {}; its secret is shown this once:",
        made.key.id,
        made.key.project,
        made.key.scopes.join(", ")
    ));
    Ok(screen::line(&screen::safe(&made.secret))?)
}

async fn list(arguments: &Ls) -> Result<(), CommandError> {
    let keys = arguments.remote.client()?.keys(arguments.project.as_deref()).await.map_err(CommandError::asked("list keys"))?;
    if arguments.remote.json {
        return Ok(screen::json(&keys)?);
    }
    let mut table = Table::new(["ID", "PROJECT", "SCOPES", "LABEL", "MADE", "EXPIRES"]);
    for key in keys {
        let expires = key.expires_at.as_deref().map_or_else(|| "never".to_owned(), moments::relative);
        table.row([key.id, key.project, key.scopes.join(","), key.label, moments::relative(&key.created_at), expires]);
    }
    Ok(table.print()?)
}
