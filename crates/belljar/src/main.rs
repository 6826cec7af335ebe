//! The program `belljar`. It reads the command line, builds the adapters, and hands over; every rule lives elsewhere.

mod doctor;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Disposable computers for code that a model wrote.
#[derive(Parser)]
#[command(name = "belljar", version, about, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Try out what this machine can do and say what to mend
    Doctor(doctor::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error),
    };
    let outcome = match arguments.command {
        Command::Doctor(arguments) => runtime.block_on(doctor::run(arguments)),
    };
    outcome.unwrap_or_else(|error| fail(&*error))
}

/// Says what went wrong, with all its causes, and ends with code 1.
#[expect(clippy::print_stderr, reason = "this is where errors meet the person at the terminal")]
fn fail(error: &dyn std::error::Error) -> ExitCode {
    eprint!("belljar: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        eprint!(": {cause}");
        source = cause.source();
    }
    eprintln!();
    ExitCode::FAILURE
}
