//! `belljar mcp`: tools for an agent, in a sandbox of its own.

mod listening;

use belljar_client::CreateSandbox;
use belljar_mcp::Place;
use belljar_types::SandboxId;
use tokio::signal::unix::{SignalKind, signal};

use super::create::Making;
use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::units;

/// Give an agent tools that work in a sandbox, over the Model Context Protocol
///
/// Speaks on standard input and output; it is started by an agent that knows the protocol, and not by a person. The tools run commands and code, read,
/// write and edit files, take checkpoints and go back to them, fork, and share ports.
///
/// The sandbox is made when a tool first needs it, from the template code-interpreter-v1 if the server has it and nothing else was asked for. It ends
/// with the agent, and within two minutes if that is killed. With --sandbox, the tools work in one that is there and stays.
///
/// With --listen, serves agents over HTTP instead. The address /mcp/NAME is the computer of that name, the same for every request until nobody has used it
/// for a while. Requests bring their own keys.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  claude mcp add sandbox -- belljar mcp
  belljar mcp --policy packages --memory 2GiB
  belljar mcp --sandbox $S
  belljar mcp --listen 127.0.0.1:7071 --policy packages --pause-when-idle

For agents that are configured with a file:
  {\"mcpServers\": {\"sandbox\": {\"command\": \"belljar\", \"args\": [\"mcp\"],
    \"env\": {\"BELLJAR_URL\": \"http://127.0.0.1:7070\", \"BELLJAR_API_KEY\": \"…\"}}}}")]
pub(crate) struct Arguments {
    /// Work in this sandbox instead of a new one, and leave it when the agent goes
    #[arg(long, short, value_name = "SANDBOX", conflicts_with_all = MAKING)]
    sandbox: Option<SandboxId>,
    /// Variable for every process in it; may be repeated
    #[arg(long, short, value_name = "NAME=VALUE", value_parser = units::parse_pair, conflicts_with = "sandbox")]
    env: Vec<(String, String)>,
    #[command(flatten)]
    making: Making,
    #[command(flatten)]
    listening: listening::Listening,
    #[command(flatten)]
    remote: Remote,
}

/// What says something about a sandbox that is to be made.
const MAKING: [&str; 12] =
    ["template", "snapshot", "isolation", "network", "policy", "cpu", "memory", "disk", "pids", "wall_time", "volumes", "no_root"];

pub(crate) async fn run(arguments: Arguments) -> Result<(), CommandError> {
    let like = || -> Result<CreateSandbox, CommandError> {
        let mut request = arguments.making.request()?;
        request.env.extend(arguments.env);
        Ok(request)
    };
    let stop = told_to_stop()?;
    if let Some(address) = arguments.listening.listen {
        return listening::serve(arguments.remote.keyless()?, like()?, address, arguments.listening, stop).await;
    }
    let client = arguments.remote.client()?;
    let place = match arguments.sandbox {
        Some(sandbox) => Place::Given(sandbox),
        None => Place::Made(Box::new(like()?)),
    };
    Ok(belljar_mcp::serve(client, place, tokio::io::stdin(), tokio::io::stdout(), stop).await?)
}

/// Waits for whoever ends this program.
fn told_to_stop() -> Result<impl Future<Output = ()>, CommandError> {
    let here = |source| CommandError::Here { operation: "wait for signals", source };
    let (mut terminated, mut interrupted) =
        (signal(SignalKind::terminate()).map_err(here)?, signal(SignalKind::interrupt()).map_err(here)?);
    Ok(async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
    })
}
