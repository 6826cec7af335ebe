//! `belljar replay`: what a terminal showed, shown again.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use belljar_client::{Client, RecordingOf};
use belljar_types::{ProcessId, SandboxId};
use futures_util::StreamExt;
use serde_json::Value;

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::screen::{self, Silent, Table};

/// Nobody waits longer than this for what was a long silence.
const LONGEST_PAUSE: f64 = 2.0;

/// Show a recorded terminal again
///
/// At the pace at which it was, without its long silences; all at once if the output is no terminal. What programs inside wrote goes to this
/// terminal as it did to the one that was recorded. There are recordings where the server is told record_terminals = true, below audit.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  belljar replay $S                              the terminal that was opened last
  belljar replay --list $S
  belljar replay --speed 4 $S p3k9m2x8c7p4q6w5z2n
  belljar replay --asciicast $S > session.cast   for players of such files")]
pub(crate) struct Arguments {
    /// Id of the sandbox, which may have ended
    sandbox: SandboxId,
    /// Id of the process whose terminal it was [default: the one that was started last]
    process: Option<ProcessId>,
    /// List what is recorded
    #[arg(long, conflicts_with_all = ["asciicast", "speed", "process"])]
    list: bool,
    /// Print the recording itself, as asciicast of version 2
    #[arg(long)]
    asciicast: bool,
    /// So many times as fast
    #[arg(long, default_value_t = 1.0, value_parser = speed)]
    speed: f64,
    #[command(flatten)]
    remote: Remote,
}

fn speed(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|speed| (0.01..=1000.0).contains(speed)).ok_or_else(|| "a number from 0.01 to 1000".to_owned())
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let sandbox = &arguments.sandbox;
    if arguments.list {
        let recordings = client.recordings(sandbox).await.map_err(CommandError::asked(format!("list the recordings of {sandbox}")))?;
        return show(&recordings, &arguments.remote);
    }
    let process = match arguments.process {
        Some(process) => process,
        None => newest(&client, sandbox).await?,
    };
    let asked = || CommandError::asked(format!("read the recording of process {process}"));
    let mut pieces = std::pin::pin!(client.recording(sandbox, &process).await.map_err(asked())?);
    let mut player = Player { speed: arguments.speed, paced: std::io::stdout().is_terminal(), at: 0.0 };
    let mut rest = Vec::new();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(asked())?;
        if arguments.asciicast {
            put(&piece)?;
            continue;
        }
        rest.extend_from_slice(&piece);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            player.play(&line).await?;
        }
    }
    Ok(())
}

async fn newest(client: &Client, sandbox: &SandboxId) -> Result<ProcessId, CommandError> {
    let recordings = client.recordings(sandbox).await.map_err(CommandError::asked(format!("list the recordings of {sandbox}")))?;
    recordings.into_iter().next_back().map(|recording| recording.process).ok_or_else(|| CommandError::Advised {
        what: format!("no terminal of sandbox {sandbox} was recorded"),
        hint: "the operator has terminals recorded with record_terminals = true in [audit]; docs/guides/audit.md".to_owned(),
    })
}

fn show(recordings: &[RecordingOf], remote: &Remote) -> Result<(), CommandError> {
    if remote.json {
        return Ok(screen::json(recordings)?);
    }
    let mut table = Table::new(["PROCESS", "BEGAN", "BYTES"]);
    for recording in recordings {
        table.row([recording.process.to_string(), recording.began_at.clone(), recording.bytes.to_string()]);
    }
    Ok(table.print()?)
}

struct Player {
    speed: f64,
    paced: bool,
    at: f64,
}

impl Player {
    /// One line of a recording; whatever is not shown to anybody is passed over.
    async fn play(&mut self, line: &[u8]) -> Result<(), CommandError> {
        let Ok(Value::Array(event)) = serde_json::from_slice(line) else { return Ok(()) };
        let [Value::Number(time), Value::String(code), Value::String(data)] = event.as_slice() else { return Ok(()) };
        let time = time.as_f64().unwrap_or(self.at);
        let pause = (time - self.at).clamp(0.0, LONGEST_PAUSE) / self.speed;
        self.at = time;
        if code != "o" {
            return Ok(());
        }
        if self.paced {
            tokio::time::sleep(Duration::try_from_secs_f64(pause).unwrap_or_default()).await;
        }
        put(data.as_bytes())
    }
}

fn put(bytes: &[u8]) -> Result<(), CommandError> {
    let mut out = std::io::stdout().lock();
    Ok(out.write_all(bytes).and_then(|()| out.flush()).map_err(|source| Silent { source })?)
}
