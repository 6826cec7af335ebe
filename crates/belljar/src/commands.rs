//! The commands that are clients of a server: each has a file, and each ends with a code.
//!
//! | code | when |
//! |---|---|
//! | 0 | done |
//! | 1 | the server or this machine said no |
//! | 2 | wrong usage |
//! | 125 | Belljar's own failure in `exec`, `code` and `shell`; `exec` and `shell` otherwise end with the code of what they ran, 128 + n for signal n |

mod artifact;
mod audit;
mod budget;
mod code;
mod completions;
mod cp;
mod create;
mod env;
mod exec;
mod fork;
mod gc;
mod key;
mod kill;
mod lease;
mod logs;
mod ls;
mod mcp;
mod metrics;
mod pause;
mod policy;
mod port;
mod project;
mod replay;
mod resume;
mod rollback;
mod shell;
mod show;
mod snapshot;
mod template;
mod tree;
mod usage;
mod volume;
mod webhook;

pub(crate) use create::Making;

use std::process::ExitCode;

use crate::command_error::{CommandError, OWN_FAILURE};

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Env(env::Arguments),
    Create(create::Arguments),
    Ls(ls::Arguments),
    Show(show::Arguments),
    Exec(exec::Arguments),
    Code(Box<code::Arguments>),
    Mcp(Box<mcp::Arguments>),
    Shell(shell::Arguments),
    Cp(cp::Arguments),
    Logs(logs::Arguments),
    Replay(replay::Arguments),
    Port(port::Arguments),
    Lease(lease::Arguments),
    Pause(pause::Arguments),
    Resume(resume::Arguments),
    #[command(subcommand)]
    Snapshot(snapshot::Command),
    Fork(fork::Arguments),
    #[command(subcommand)]
    Volume(volume::Command),
    Rollback(rollback::Arguments),
    Tree(tree::Arguments),
    #[command(subcommand)]
    Artifact(artifact::Command),
    Kill(kill::Arguments),
    Usage(usage::Arguments),
    Metrics(metrics::Arguments),
    #[command(subcommand)]
    Policy(policy::Command),
    #[command(subcommand)]
    Template(template::Command),
    #[command(subcommand)]
    Project(project::Command),
    #[command(subcommand)]
    Key(key::Command),
    #[command(subcommand)]
    Budget(budget::Command),
    #[command(subcommand)]
    Webhook(webhook::Command),
    #[command(subcommand)]
    Audit(audit::Command),
    Gc(gc::Arguments),
    Completions(completions::Arguments),
}

/// Runs a command and gives the code to end with.
pub(crate) async fn run(command: Command) -> ExitCode {
    let done = match command {
        Command::Exec(arguments) => return code_of(exec::run(arguments).await),
        Command::Code(arguments) => return code_of(code::run(*arguments).await),
        Command::Shell(arguments) => return code_of(shell::run(arguments).await),
        Command::Mcp(arguments) => mcp::run(*arguments).await,
        Command::Env(arguments) => env::run(&arguments),
        Command::Create(arguments) => create::run(arguments).await,
        Command::Ls(arguments) => ls::run(arguments).await,
        Command::Show(arguments) => show::run(arguments).await,
        Command::Cp(arguments) => cp::run(arguments).await,
        Command::Logs(arguments) => logs::run(arguments).await,
        Command::Replay(arguments) => replay::run(arguments).await,
        Command::Port(arguments) => port::run(arguments).await,
        Command::Lease(arguments) => lease::run(arguments).await,
        Command::Pause(arguments) => pause::run(arguments).await,
        Command::Resume(arguments) => resume::run(arguments).await,
        Command::Snapshot(command) => snapshot::run(command).await,
        Command::Volume(command) => volume::run(command).await,
        Command::Fork(arguments) => fork::run(arguments).await,
        Command::Rollback(arguments) => rollback::run(arguments).await,
        Command::Tree(arguments) => tree::run(arguments).await,
        Command::Artifact(command) => artifact::run(command).await,
        Command::Kill(arguments) => kill::run(arguments).await,
        Command::Usage(arguments) => usage::run(arguments).await,
        Command::Metrics(arguments) => metrics::run(arguments).await,
        Command::Policy(command) => policy::run(command).await,
        Command::Template(command) => template::run(command).await,
        Command::Project(command) => project::run(command).await,
        Command::Key(command) => key::run(command).await,
        Command::Budget(command) => budget::run(command).await,
        Command::Webhook(command) => webhook::run(command).await,
        Command::Audit(command) => audit::run(command).await,
        Command::Gc(arguments) => gc::run(arguments).await,
        Command::Completions(arguments) => completions::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.tell(1),
    }
}

/// The code of what ran, or the one that says that nothing did.
fn code_of(outcome: Result<u8, CommandError>) -> ExitCode {
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => error.tell(OWN_FAILURE),
    }
}
