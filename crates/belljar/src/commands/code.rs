//! `belljar code`: code in a context of a sandbox, with what it writes and shows.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use belljar_client::{ClientError, CodeLine, RunCode};
use belljar_types::SandboxId;
use futures_util::StreamExt;
use tokio::io::AsyncReadExt;

use super::create::Making;
use crate::command_error::CommandError;
use crate::lodging::Lodging;
use crate::pictures::Pictures;
use crate::remote::Remote;
use crate::screen::{self, Silent};
use crate::units;

/// Sandboxes that are made for code are made from this, unless told otherwise.
const TEMPLATE: &str = "code-interpreter-v1";

/// Run code in a context that remembers what ran before
///
/// Without --sandbox, a sandbox is made for it from the template code-interpreter-v1 and ended afterwards. With it, what the code defines stays for the next
/// `belljar code` in the same sandbox and language. What it writes comes out here; the value of its last expression is printed; pictures are saved as
/// figure-1.png and so on, or shown with --show.
///
/// Ctrl-C interrupts the code. Ends with 0, with 1 if the code failed, with 125 if Belljar itself failed. With --json, one document a line.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  echo 'print(6*7)' | belljar code -
  belljar code --language r -c 'summary(cars)'
  S=$(belljar create --template code-interpreter-v1)
  belljar code --sandbox $S -c 'x = 1'
  belljar code --sandbox $S -c 'x + 1'
  belljar code --sandbox $S --save pictures plot.py")]
#[command(group = clap::ArgGroup::new("what").required(true).args(["file", "code"]))]
pub(crate) struct Arguments {
    /// The file with the code; - for standard input
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The code itself
    #[arg(long, short, value_name = "CODE")]
    code: Option<String>,
    /// Its language: python, javascript, typescript, r, java or bash [default: python]
    #[arg(long, short, value_name = "NAME", conflicts_with = "context")]
    language: Option<String>,
    /// The sandbox to run it in
    #[arg(long, short, value_name = "SANDBOX")]
    sandbox: Option<SandboxId>,
    /// The context to run it in, instead of the language's own
    #[arg(long, value_name = "CONTEXT", requires = "sandbox")]
    context: Option<String>,
    /// A variable for this run only; may be repeated
    #[arg(long, short, value_name = "NAME=VALUE", value_parser = units::parse_pair)]
    env: Vec<(String, String)>,
    /// Interrupt it after this long, as in 30s
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    timeout: Option<Duration>,
    /// The directory to save pictures in
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    save: PathBuf,
    /// Show pictures in the terminal instead of saving them; iTerm2, WezTerm, Konsole, VS Code, kitty and Ghostty can
    #[arg(long, conflicts_with = "save")]
    show: bool,
    #[command(flatten)]
    making: Making,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(arguments: Arguments) -> Result<u8, CommandError> {
    let client = arguments.remote.client()?;
    let code = RunCode {
        code: code(arguments.file, arguments.code).await?,
        language: arguments.language,
        context: arguments.context,
        env: arguments.env.into_iter().collect::<BTreeMap<_, _>>(),
        timeout_seconds: arguments.timeout.map(|timeout| timeout.as_secs_f64()),
    };
    let mut pictures = if arguments.show { Pictures::Shown } else { Pictures::saved(arguments.save) };
    let json = arguments.remote.json;
    let lodging = Lodging::of(arguments.sandbox);
    let run = async |sandbox: &SandboxId| {
        let attempt = format!("run code in sandbox {sandbox}");
        let asked = |error: ClientError| CommandError::asked(attempt.clone())(error);
        let lines = client.run_code(sandbox, &code).await.map_err(asked)?;
        let mut lines = std::pin::pin!(lines);
        let mut failed = false;
        loop {
            let line = tokio::select! {
                line = lines.next() => line,
                // Dropping the stream interrupts the code.
                _ = tokio::signal::ctrl_c() => return Ok(130),
            };
            let Some(line) = line.transpose().map_err(asked)? else { break };
            failed |= matches!(line, CodeLine::Error { .. } | CodeLine::Lost { .. });
            if let CodeLine::Failed { problem } = line {
                return Err(asked(ClientError::Refused(problem)));
            }
            if json {
                screen::json_line(&line)?;
            } else {
                print(&line, &mut pictures)?;
            }
        }
        Ok(u8::from(failed))
    };
    lodging.within(&client, arguments.making.or_template(TEMPLATE), run).await
}

async fn code(file: Option<PathBuf>, code: Option<String>) -> Result<String, CommandError> {
    match (code, file) {
        (Some(code), _) => Ok(code),
        (None, Some(file)) if file.as_os_str() != "-" => tokio::fs::read_to_string(&file).await.map_err(CommandError::file("read", file)),
        (None, _) => {
            let mut text = String::new();
            let read = tokio::io::stdin().read_to_string(&mut text).await;
            read.map_err(|source| CommandError::Here { operation: "read the code from standard input", source })?;
            Ok(text)
        }
    }
}

fn print(line: &CodeLine, pictures: &mut Pictures) -> Result<(), CommandError> {
    match line {
        CodeLine::Stdout { text } => written(std::io::stdout().lock(), text)?,
        CodeLine::Stderr { text } => written(std::io::stderr().lock(), text)?,
        CodeLine::Result { formats, .. } => {
            if !pictures.take(formats)?
                && let Some(text) = formats.get("text/plain").and_then(serde_json::Value::as_str)
            {
                written(std::io::stdout().lock(), &format!("{}\n", text.trim_end_matches('\n')))?;
            }
        }
        CodeLine::Error { name, value, traceback } => {
            let text = if traceback.is_empty() { format!("{name}: {value}") } else { traceback.join("\n") };
            written(std::io::stderr().lock(), &format!("{}\n", text.trim_end_matches('\n')))?;
        }
        CodeLine::Lost { message } => screen::remark(&format!("belljar: {}", screen::safe(message))),
        CodeLine::Began { .. } | CodeLine::End | CodeLine::Heartbeat | CodeLine::Failed { .. } => {}
    }
    Ok(())
}

/// What the code wrote, unchanged, as `exec` gives a command's output.
fn written(mut out: impl Write, text: &str) -> Result<(), Silent> {
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|source| Silent { source })
}
