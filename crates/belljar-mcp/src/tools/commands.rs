//! Commands in the sandbox's shell.

use std::collections::BTreeMap;

use belljar_client::{Exec, ExecResult, Exit};
use rmcp::model::CallToolResult;
use rmcp::schemars::JsonSchema;
use serde::Deserialize;

use super::Outcome;
use crate::lodgings::Lodgings;
use crate::text;

/// Long enough for a build, short enough that a command that waits for input is noticed.
pub(super) const DEFAULT_TIMEOUT: f64 = 120.0;

/// Run a shell command in the sandbox and get its output and exit code.
///
/// It runs to its end: a program that goes on, such as a server, has to be put aside with its output in a file, as in
/// `nohup npm start > /tmp/server.log 2>&1 &`. Each command starts a fresh shell; files stay, `cd` and variables do not.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct RunCommand {
    /// The command line, run by /bin/sh; pipes, && and redirections work.
    command: String,
    /// The directory to run it in. The user's home when left out.
    cwd: Option<String>,
    /// Kill it after so many seconds. 120 when left out.
    timeout_seconds: Option<f64>,
    /// Text for its standard input. None when left out: programs that ask get end of file.
    stdin: Option<String>,
    /// Variables for this command only.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// `user` (who may use sudo where the sandbox allows it) or `root`. `user` when left out.
    user: Option<String>,
    /// Another sandbox of this connection, by the id that fork_sandbox gave.
    sandbox: Option<String>,
}

pub(super) async fn run(lodgings: &Lodgings, asked: RunCommand) -> Outcome {
    let sandbox = lodgings.find(asked.sandbox.as_deref()).await?;
    let timeout = asked.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT);
    let exec = Exec {
        command: asked.command,
        env: asked.env,
        cwd: asked.cwd,
        user: asked.user,
        stdin: asked.stdin,
        timeout_seconds: Some(timeout),
        max_output_bytes: Some(text::ROOM as u32),
    };
    let done = lodgings.once(|| lodgings.client.exec(&sandbox, &exec)).await;
    Ok(answer(&done.map_err(|error| lodgings.failed(&sandbox, "run the command", error))?, timeout))
}

fn answer(result: &ExecResult, timeout: f64) -> CallToolResult {
    let mut parts = Vec::new();
    let (stdout, stderr) = (text::marked(&result.stdout, result.stdout_omitted), text::marked(&result.stderr, result.stderr_omitted));
    if !stdout.is_empty() {
        parts.push(stdout);
    }
    if !stderr.is_empty() {
        parts.push(format!("[standard error]\n{stderr}"));
    }
    parts.push(format!("[{}]", ending(&result.exit, timeout)));
    super::words(parts.iter().map(|part| part.trim_end_matches('\n')).collect::<Vec<_>>().join("\n"))
}

fn ending(exit: &Exit, timeout: f64) -> String {
    match (exit.cause.as_deref(), exit.exit_code, exit.signal) {
        (Some("deadline"), ..) => format!("killed after {timeout} s: it had not ended by then"),
        (Some("out-of-memory"), ..) => "killed: the sandbox has no memory left for it".to_owned(),
        (_, Some(code), _) => format!("exit code {code}"),
        (_, None, Some(signal)) => format!("killed by signal {signal}"),
        (_, None, None) => "ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use belljar_types::ProcessId;

    use super::*;

    fn told(stdout: &str, stderr: &str, exit: Exit) -> String {
        let result = ExecResult {
            process: ProcessId::random(),
            exit,
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
            stdout_omitted: None,
            stderr_omitted: None,
        };
        let answer = answer(&result, 1.5);
        answer.content[0].as_text().unwrap().text.clone()
    }

    #[test]
    fn output_comes_before_the_end_and_each_is_named() {
        let exit = |exit_code, signal, cause: Option<&str>| Exit { exit_code, signal, cause: cause.map(str::to_owned) };
        assert_eq!(told("hello\n", "", exit(Some(0), None, None)), "hello\n[exit code 0]");
        assert_eq!(told("", "", exit(None, Some(11), None)), "[killed by signal 11]");
        assert_eq!(told("a", "b\n", exit(Some(3), None, None)), "a\n[standard error]\nb\n[exit code 3]");
        assert_eq!(told("", "", exit(None, Some(9), Some("deadline"))), "[killed after 1.5 s: it had not ended by then]");
        assert_eq!(told("", "", exit(None, Some(9), Some("out-of-memory"))), "[killed: the sandbox has no memory left for it]");
    }
}
