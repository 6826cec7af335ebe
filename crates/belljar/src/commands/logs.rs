//! `belljar logs`: what a process wrote, from the start.

use std::sync::Arc;
use std::time::Duration;

use belljar_client::{Client, ClientError, Follower, Patience, Process};
use belljar_types::{Offsets, OutputEvent, ProcessId, SandboxId};

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::screen::Silent;
use crate::session::{Style, print_event};

const PATIENCE: Duration = Duration::from_secs(60);

/// Print what a process wrote, from its start
///
/// Standard output and standard error come out apart, unchanged. Of long output only the end is kept: how many bytes are gone is said. With --json, one
/// document a line.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  P=$(belljar exec --detach $S -- make)
  belljar logs -f $S $P
  belljar logs $S                          the process that was started last")]
pub(crate) struct Arguments {
    /// Id of the sandbox
    sandbox: SandboxId,
    /// Id of the process; `belljar show` lists them [default: the one that was started last]
    process: Option<ProcessId>,
    /// Go on until the process ends
    #[arg(long, short)]
    follow: bool,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let process = find(&client, &arguments.sandbox, arguments.process.as_ref()).await?;
    let until = Offsets { stdout: process.written.stdout, stderr: process.written.stderr };
    let style = if arguments.remote.json { Style::Json } else { Style::Raw };
    let patience = Arc::new(Patience::new(PATIENCE));
    let mut follower = Follower::new(client, arguments.sandbox.clone(), process.id.clone(), Offsets::default(), patience);
    let mut at = Offsets::default();
    let asked = |error: ClientError| CommandError::asked(format!("read the output of process {}", process.id))(error);
    // Nothing more is waited for when everything was printed that was there when we came.
    while arguments.follow || process.exit.is_some() || at.stdout < until.stdout || at.stderr < until.stderr {
        let Some(event) = follower.next().await.map_err(asked)? else { break };
        advance(&mut at, &event);
        print_event(&event, style).await.map_err(|source| Silent { source })?;
    }
    Ok(())
}

async fn find(client: &Client, sandbox: &SandboxId, process: Option<&ProcessId>) -> Result<Process, CommandError> {
    let asked = CommandError::asked(format!("find the process in sandbox {sandbox}"));
    if let Some(id) = process {
        return client.process(sandbox, id).await.map_err(asked);
    }
    let processes = client.processes(sandbox).await.map_err(asked)?;
    processes.into_iter().max_by(|a, b| a.started_at.cmp(&b.started_at)).ok_or_else(|| CommandError::Advised {
        what: format!("no process was started in sandbox {sandbox}"),
        hint: format!("start one: belljar exec --detach {sandbox} -- COMMAND"),
    })
}

fn advance(at: &mut Offsets, event: &OutputEvent) {
    let (stream, to) = match event {
        OutputEvent::Data { stream, offset, bytes } => (stream, offset + bytes.len() as u64),
        OutputEvent::Gap { stream, to, .. } => (stream, *to),
        OutputEvent::Exit(_) => return,
    };
    match stream {
        belljar_types::StreamKind::Stdout => at.stdout = to,
        belljar_types::StreamKind::Stderr => at.stderr = to,
    }
}
