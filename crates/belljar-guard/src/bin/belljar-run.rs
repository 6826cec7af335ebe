//! The guard alone, for machines that need nothing else of Belljar: what `belljar run` does, in a small program.

use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
#[command(name = "belljar-run", version)]
struct CommandLine {
    #[command(flatten)]
    arguments: belljar_guard::Arguments,
}

fn main() -> ExitCode {
    belljar_guard::arguments::run(CommandLine::parse().arguments)
}
