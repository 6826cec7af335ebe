//! `belljar exec`: one command in a sandbox, with its streams and its code.

use std::time::Duration;

use belljar_client::{SpoolRequest, StartProcess};
use belljar_types::{PtySize, SandboxId};

use super::create::Making;
use crate::command_error::CommandError;
use crate::lodging::Lodging;
use crate::remote::Remote;
use crate::session::{self, Manner, Style};
use crate::{screen, terminal, units};

/// Run a command in a sandbox and end with its exit code
///
/// Standard output and standard error of the command come out here, apart and unchanged. With -i, standard input goes in. If the server is
/// restarted meanwhile, the command goes on and so does this, at the byte where it was.
///
/// Ctrl-C (and SIGTERM) is sent to the command. A second one kills it, and this ends.
///
/// Ends with the command's code, with 128 + n if signal n ended it, and with 125 if Belljar itself failed. With --json, one document a line: pieces
/// of output, then the end.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  belljar exec $S -- python3 -c 'print(6*7)'
  tar c src | belljar exec -i $S -- tar x
  belljar exec --user root --cwd /etc $S -- apt-get update
  belljar exec --new -- uname -a           a fresh sandbox, ended afterwards
  P=$(belljar exec --detach $S -- make)    and later: belljar logs $S $P")]
pub(crate) struct Arguments {
    #[command(flatten)]
    running: Running,
    /// Pass standard input on
    #[arg(long, short)]
    interactive: bool,
    /// Give the command a terminal
    #[arg(long, short)]
    tty: bool,
    /// Print the process's id and leave it running; of its output, the last 4 MiB are kept
    #[arg(long, short, conflicts_with_all = ["interactive", "new"])]
    detach: bool,
    /// Kill the command after this long, as in 30s
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    timeout: Option<Duration>,
    #[command(flatten)]
    lodging: Lodging,
    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    making: Making,
    #[command(flatten)]
    remote: Remote,
}

/// How a command runs; `shell` takes the same.
#[derive(clap::Args, Debug, Clone)]
pub(super) struct Running {
    /// Who runs it [default: the template's user]
    #[arg(long, short, value_name = "NAME")]
    user: Option<String>,
    /// The directory it starts in [default: the template's, or the user's home]
    #[arg(long, short = 'w', value_name = "DIRECTORY")]
    cwd: Option<String>,
    /// A variable for it; may be repeated
    #[arg(long, short, value_name = "NAME=VALUE", value_parser = units::parse_pair)]
    env: Vec<(String, String)>,
}

/// What is kept of output while nobody takes it. The command waits for readers, so nothing is lost.
const ATTACHED: SpoolRequest = SpoolRequest { capacity_bytes: 1 << 20, overflow: "slow" };
/// Nobody may ever read it: the oldest makes room.
const DETACHED: SpoolRequest = SpoolRequest { capacity_bytes: 4 << 20, overflow: "drop-oldest" };

impl Running {
    /// A process for this command line.
    pub(super) fn process(self, command: Vec<String>, pty: Option<PtySize>) -> StartProcess {
        let mut env: std::collections::BTreeMap<String, String> = self.env.into_iter().collect();
        if pty.is_some() {
            for name in ["TERM", "COLORTERM"] {
                if let Ok(value) = std::env::var(name) {
                    env.entry(name.to_owned()).or_insert(value);
                }
            }
        }
        StartProcess { env, cwd: self.cwd, user: self.user, pty, spool: Some(ATTACHED), ..StartProcess::new(command) }
    }
}

pub(crate) async fn run(arguments: Arguments) -> Result<u8, CommandError> {
    let client = arguments.remote.client()?;
    let size = arguments.tty.then(|| terminal::size().unwrap_or(PtySize { columns: 80, rows: 24 }));
    let start = StartProcess {
        stdin: arguments.interactive,
        deadline_seconds: arguments.timeout.map(|timeout| timeout.as_secs_f64()),
        ..arguments.running.process(arguments.command, size)
    };
    if arguments.detach {
        let sandbox = arguments.lodging.sandbox()?;
        return detach(&client, sandbox, StartProcess { spool: Some(DETACHED), ..start }, arguments.remote.json).await.map(|()| 0);
    }
    let manner = Manner {
        input: arguments.interactive,
        raw: arguments.tty && arguments.interactive && terminal::is_interactive(),
        style: if arguments.remote.json { Style::Json } else { Style::Raw },
    };
    arguments.lodging.within(&client, arguments.making, async |sandbox| session::drive(&client, sandbox, start, manner).await).await
}

async fn detach(client: &belljar_client::Client, sandbox: &SandboxId, start: StartProcess, json: bool) -> Result<(), CommandError> {
    let process =
        client.start_process(sandbox, &start).await.map_err(CommandError::asked(format!("start a process in sandbox {sandbox}")))?;
    if json {
        screen::json(&process)?;
    } else {
        screen::line(process.id.as_str())?;
    }
    Ok(())
}
