//! `belljar kill`: the end of sandboxes.

use belljar_client::{Client, ListSandboxes};
use belljar_types::SandboxId;
use futures_util::StreamExt;

use super::ls::live_states;
use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::{progress, screen};

/// How many are ended at one time.
const TOGETHER: usize = 8;

/// End sandboxes, with everything in them
///
/// Prints the id of each that was ended. One that had ended before counts as done. With --json, one document a line: the sandbox as it
/// is then.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  belljar kill sk3v9m2x8c7p4q6w5z2n
  belljar kill --all")]
pub(crate) struct Arguments {
    /// Ids of the sandboxes
    #[arg(required_unless_present = "all", conflicts_with = "all", value_name = "SANDBOX")]
    sandboxes: Vec<SandboxId>,
    /// All sandboxes of this key's project
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let sandboxes = if arguments.all { all(&client).await? } else { arguments.sandboxes };
    let ending = futures_util::stream::iter(sandboxes).map(|id| {
        let client = client.clone();
        async move { (client.kill_sandbox(&id).await, id) }
    });
    let mut ending = ending.buffer_unordered(TOGETHER);
    let mut first_error = None;
    while let Some((ended, id)) = progress::waiting("ending sandboxes", ending.next()).await {
        match ended {
            Ok(sandbox) if arguments.remote.json => screen::json_line(&sandbox)?,
            Ok(sandbox) => screen::line(sandbox.id.as_str())?,
            Err(error) => {
                // The rest is ended all the same; one failure is told at the end, the others here.
                let error = CommandError::asked(format!("end sandbox {id}"))(error);
                if let Some(earlier) = first_error.replace(error) {
                    let _ = CommandError::tell(&earlier, 1);
                }
            }
        }
    }
    first_error.map_or(Ok(()), Err)
}

async fn all(client: &Client) -> Result<Vec<SandboxId>, CommandError> {
    let mut which = ListSandboxes { states: live_states(), limit: Some(1000), ..ListSandboxes::default() };
    let mut ids = Vec::new();
    loop {
        let page = client.sandboxes(&which).await.map_err(CommandError::asked("list sandboxes"))?;
        ids.extend(page.sandboxes.into_iter().map(|sandbox| sandbox.id));
        match page.next_cursor {
            Some(cursor) => which.cursor = Some(cursor),
            None => return Ok(ids),
        }
    }
}
