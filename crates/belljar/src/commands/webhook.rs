//! `belljar webhook`: who is told what happens to a project's sandboxes.

use belljar_client::WebhookOf;

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::screen::{self, Table};

/// Add, list and remove addresses that are told what happens
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Add(Add),
    Ls(Ls),
    Rm(Rm),
}

/// Tell an address what happens from now on, and print the secret that messages are signed with
///
/// Kinds: sandbox.created, sandbox.paused, sandbox.resumed, sandbox.ended, budget.warning, budget.reached.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  belljar webhook add https://example.com/hook
  belljar webhook add https://example.com/hook --kind sandbox.ended --kind budget.reached")]
pub(crate) struct Add {
    /// Where messages go
    #[arg(value_name = "URL")]
    address: String,
    /// Tell only of this; may be given several times
    #[arg(long = "kind", value_name = "KIND")]
    kinds: Vec<String>,
    #[command(flatten)]
    remote: Remote,
}

/// List the project's webhooks and how each fares
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar webhook ls")]
pub(crate) struct Ls {
    #[command(flatten)]
    remote: Remote,
}

/// Tell an address nothing any more
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar webhook rm wk3v9m2x8c7p4q6w5z2n")]
pub(crate) struct Rm {
    /// Id of the webhook
    id: String,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(command: Command) -> Result<(), CommandError> {
    match command {
        Command::Add(Add { address, kinds, remote }) => {
            let added = remote.client()?.add_webhook(&address, &kinds).await.map_err(CommandError::asked("add a webhook"))?;
            if remote.json {
                return Ok(screen::json(&added)?);
            }
            screen::remark(&format!("{}: messages are signed with this secret, which is not shown again", screen::safe(&added.webhook.id)));
            Ok(screen::line(&screen::safe(&added.secret))?)
        }
        Command::Ls(Ls { remote }) => {
            let webhooks = remote.client()?.webhooks().await.map_err(CommandError::asked("list webhooks"))?;
            show(&webhooks, &remote)
        }
        Command::Rm(Rm { id, remote }) => {
            let asked = CommandError::asked(format!("remove the webhook {id}"));
            remote.client()?.remove_webhook(&id).await.map_err(asked)
        }
    }
}

fn show(webhooks: &[WebhookOf], remote: &Remote) -> Result<(), CommandError> {
    if remote.json {
        return Ok(screen::json(webhooks)?);
    }
    let mut table = Table::new(["ID", "URL", "KINDS", "LAST TOLD", "WAITING", "PROBLEM"]);
    for webhook in webhooks {
        let kinds = if webhook.kinds.is_empty() { "all".to_owned() } else { webhook.kinds.join(",") };
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let WebhookOf { id, url, delivered_at, problem, waiting, .. } = webhook;
        table.row([id.clone(), url.clone(), kinds, or_none(delivered_at), waiting.to_string(), or_none(problem)]);
    }
    Ok(table.print()?)
}
