//! `belljar shell`: a terminal in a sandbox.

use belljar_client::StartProcess;

use super::create::Making;
use super::exec::Running;
use crate::command_error::CommandError;
use crate::lodging::Lodging;
use crate::remote::Remote;
use crate::session::{self, Manner, Style};
use crate::terminal;

/// The first of these that is there.
const LOGIN_SHELL: &str = "if [ -x /bin/bash ]; then exec /bin/bash -l; else exec /bin/sh -l; fi";

/// Open a shell in a sandbox
///
/// A real terminal: editors, colours, Ctrl-C, the size of the window. Ends with the shell's exit code.
///
/// If the other end does not answer any more: Enter, then ~ and . leave at once; what runs is sent SIGHUP. ~? shows these keys.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  belljar shell sk3v9m2x8c7p4q6w5z2n
  belljar shell --user root $S -- vim /etc/hosts
  belljar shell --new --net open           a fresh sandbox, ended afterwards")]
pub(crate) struct Arguments {
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    lodging: Lodging,
    /// What to run instead of a login shell
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    making: Making,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(arguments: Arguments) -> Result<u8, CommandError> {
    if arguments.remote.json || !terminal::is_interactive() {
        return Err(CommandError::Usage {
            what: "a shell needs a terminal for input and output".to_owned(),
            hint: "`belljar exec -i SANDBOX -- sh` runs commands from a file or a pipe",
        });
    }
    let client = arguments.remote.client()?;
    let command = match arguments.command.is_empty() {
        true => ["/bin/sh", "-c", LOGIN_SHELL].map(str::to_owned).to_vec(),
        false => arguments.command,
    };
    let start = StartProcess { stdin: true, ..arguments.running.process(command, terminal::size()) };
    let manner = Manner { input: true, raw: true, style: Style::Raw };
    arguments.lodging.within(&client, arguments.making, async |sandbox| session::drive(&client, sandbox, start, manner).await).await
}
