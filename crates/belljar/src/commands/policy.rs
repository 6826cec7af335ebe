//! `belljar policy`: read, explain, compare and try policies on this machine, and hold a running sandbox to another one.

use std::path::PathBuf;
use std::sync::Arc;

use belljar_client::Change;
use belljar_core::policy::{Compiled, Enforcers, Format, Operator, Policy, diff, enforcement, explain, parse_cases};
use belljar_types::{IsolationClass, SandboxId};

use crate::command_error::CommandError;
use crate::config::{Config, read_policy};
use crate::remote::Remote;
use crate::screen;

/// Check, explain, compare and test what sandboxes may do
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Can it be read, and who holds each rule on each class?
    #[command(after_help = "Example:\n  belljar policy check agent.toml")]
    Check(One),
    /// Say it in sentences
    #[command(after_help = "Example:\n  belljar policy explain packages")]
    Explain(One),
    /// Show what changes from one to another
    #[command(after_help = "Example:\n  belljar policy diff before.toml after.toml")]
    Diff(Two),
    /// Ask it about a list of cases; ends with 1 if one is not decided as expected
    #[command(after_help = "Example:\n  belljar policy test agent.toml cases.toml")]
    Test(Cases),
    /// Hold a running sandbox to another policy; connections that it does not allow are cut
    #[command(after_help = "Example:\n  belljar policy apply sk3v9m2x8c7p4q6w5z2n tighter.toml")]
    Apply(Apply),
}

#[derive(clap::Args)]
pub(crate) struct One {
    /// A file, or the name of a profile: offline, packages, open
    policy: String,
    /// The server's configuration file, for its lists of hosts [default: /etc/belljar/belljar.toml, if it is there]
    #[arg(long, env = "BELLJAR_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(clap::Args)]
pub(crate) struct Two {
    /// A file or a profile
    before: String,
    /// Another
    after: String,
}

#[derive(clap::Args)]
pub(crate) struct Cases {
    #[command(flatten)]
    one: One,
    /// The cases: TOML, YAML or JSON
    cases: PathBuf,
}

#[derive(clap::Args)]
pub(crate) struct Apply {
    /// Id of the sandbox
    sandbox: SandboxId,
    /// A file or a profile
    policy: String,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(command: Command) -> Result<(), CommandError> {
    match command {
        Command::Check(one) => check(&one),
        Command::Explain(one) => lines(explain(&read(&one.policy)?)),
        Command::Diff(two) => lines(diff(&read(&two.before)?, &read(&two.after)?).iter().map(ToString::to_string)),
        Command::Test(cases) => test(&cases),
        Command::Apply(arguments) => apply(arguments).await,
    }
}

/// A document or a profile as the API takes it.
pub(crate) fn to_send(text: &str) -> Result<serde_json::Value, CommandError> {
    let policy = read(text)?;
    serde_json::from_str(&policy.to_json()).map_err(|error| CommandError::Refused(format!("the policy {text} cannot be sent: {error}")))
}

fn read(text: &str) -> Result<Policy, CommandError> {
    read_policy(text).map_err(|problem| CommandError::Refused(format!("the policy {text} cannot be used: {problem}")))
}

fn operator(one: &One) -> Result<Arc<Operator>, CommandError> {
    let config = Config::load(one.config.as_deref()).map_err(|error| CommandError::Refused(belljar_core::chain(&error)))?;
    Ok(Arc::new(config.network.operator()))
}

fn check(one: &One) -> Result<(), CommandError> {
    let refused = |error: belljar_core::policy::PolicyError| CommandError::Refused(error.to_string());
    let policy = read(&one.policy)?;
    Compiled::new(&policy, &operator(one)?).map_err(refused)?;
    let server = Enforcers { egress: true, inspection: true, secrets: true };
    for class in [IsolationClass::Gvisor, IsolationClass::Container] {
        screen::line(&format!("{class}:"))?;
        for held in enforcement(&policy, class, &server).map_err(refused)? {
            screen::line(&format!("  {}: {}", held.rule, held.by.describe()))?;
        }
    }
    Ok(())
}

fn test(arguments: &Cases) -> Result<(), CommandError> {
    let refused = |error: belljar_core::policy::PolicyError| CommandError::Refused(error.to_string());
    let policy = Compiled::new(&read(&arguments.one.policy)?, &operator(&arguments.one)?).map_err(refused)?;
    let path = arguments.cases.display().to_string();
    let text = std::fs::read_to_string(&arguments.cases)
        .map_err(|error| CommandError::Refused(format!("the cases {path} cannot be read: {error}")))?;
    let cases = parse_cases(&text, Format::of_file_name(&path)).map_err(refused)?;
    let mut failed = 0;
    for case in &cases {
        let trial = case.run(&policy);
        failed += usize::from(!trial.passed);
        let mark = if trial.passed { "ok  " } else { "FAIL" };
        screen::line(&format!(
            "{mark} {}:{} {} {}: {}",
            screen::safe(&case.to),
            case.port,
            case.method.as_deref().unwrap_or("-"),
            case.path.as_deref().unwrap_or("-"),
            trial.said
        ))?;
    }
    if failed == 0 { Ok(()) } else { Err(CommandError::Refused(format!("{failed} of {} cases were not decided as expected", cases.len()))) }
}

async fn apply(arguments: Apply) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let change = Change { policy: Some(to_send(&arguments.policy)?), ..Change::default() };
    let changed = client.change_sandbox(&arguments.sandbox, &change).await;
    let sandbox = changed.map_err(CommandError::asked(format!("change the policy of sandbox {}", arguments.sandbox)))?;
    if arguments.remote.json {
        Ok(screen::json(&sandbox)?)
    } else {
        Ok(screen::line(&format!("{} is held to {}", sandbox.id, arguments.policy))?)
    }
}

fn lines(all: impl IntoIterator<Item = String>) -> Result<(), CommandError> {
    for line in all {
        screen::line(&screen::safe(&line))?;
    }
    Ok(())
}
