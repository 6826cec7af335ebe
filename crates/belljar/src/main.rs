//! The program `belljar`. It reads the command line and hands over; every rule lives elsewhere.
//!
//! `serve` and `doctor` work on this machine and build the adapters (`compose`), `run` needs no server either; all other commands
//! ([`commands`]) are a client of a server's API and nothing more.

mod broker;
mod certs;
mod command_error;
mod commands;
mod compose;
mod config;
mod doctor;
mod down;
mod leave_keys;
mod lodging;
mod moments;
mod outlet;
#[cfg(test)]
mod pages;
mod pictures;
mod progress;
mod registries;
mod remote;
mod run;
mod screen;
mod secret;
mod serve;
mod session;
mod telemetry;
mod terminal;
mod units;

use std::num::NonZero;
use std::process::ExitCode;

use belljar_linux::memory::keep_freed;
use clap::{Parser, Subcommand};

/// Disposable computers for code that a model wrote.
#[derive(Parser)]
#[command(name = "belljar", version, arg_required_else_help = true, propagate_version = true, max_term_width = 100)]
#[command(after_help = "\
Begin with:
  belljar serve &                                start a server on this machine (root)
  eval \"$(belljar env)\"                          say where it is and who you are
  belljar template build --shared base templates/base.toml
                                                 make what sandboxes are made from (once, minutes)
  belljar exec --new -- python3 -c 'print(6*7)'  run something in a fresh sandbox

`belljar help COMMAND` explains a command, with an example.")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Serve(serve::Arguments),
    Down(down::Arguments),
    Doctor(doctor::Arguments),
    Run(run::Arguments),
    Certs(certs::Arguments),
    ServeBucket(broker::Arguments),
    #[command(subcommand)]
    Secret(secret::Command),
    #[command(flatten)]
    Remote(Box<commands::Command>),
}

/// Memory that files passed through and the next ones will pass through, for each processor.
const KEPT_MEMORY: i32 = 8 << 20;

/// What can go wrong in a command that works on this machine itself.
pub(crate) type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match arguments.command {
        // Before there are threads: it goes on in a copy of this process.
        Command::Run(arguments) => return run::run(arguments),
        Command::Serve(arguments) => {
            let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
            keep_freed(KEPT_MEMORY, i32::try_from(processors).unwrap_or(i32::MAX));
            on_threads(serve::run(arguments))
        }
        Command::Down(arguments) => on_threads(down::run(arguments)),
        Command::ServeBucket(arguments) => broker::run(&arguments),
        Command::Certs(arguments) => certs::run(&arguments),
        Command::Secret(command) => secret::run(&command),
        Command::Doctor(arguments) => on_threads(doctor::run(arguments)),
        Command::Remote(command) => on_threads(async { Ok(commands::run(*command).await) }),
    };
    outcome.unwrap_or_else(|error| fail(&*error))
}

fn on_threads(work: impl Future<Output = Result<ExitCode, Failure>>) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(work);
    // Reads of a terminal cannot be called back; nobody waits for them.
    runtime.shutdown_background();
    outcome
}

/// Says what went wrong, with all its causes, and ends with code 1.
fn fail(error: &dyn std::error::Error) -> ExitCode {
    screen::remark(&format!("belljar: {}", command_error::told(error)));
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent_and_every_command_has_an_example() {
        let mut whole = Arguments::command();
        whole.clone().debug_assert();
        let mut waiting: Vec<clap::Command> = whole.get_subcommands_mut().map(|command| command.clone()).collect();
        while let Some(mut command) = waiting.pop() {
            waiting.extend(command.get_subcommands().cloned());
            let help = command.render_long_help().to_string();
            assert!(command.has_subcommands() || help.contains("Example"), "{} has no example", command.get_name());
        }
    }
}
