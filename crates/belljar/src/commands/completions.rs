//! `belljar completions`: what a shell needs to complete commands and options.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::command_error::CommandError;
use crate::screen::Silent;

/// Print completions for a shell
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  belljar completions bash > /etc/bash_completion.d/belljar
  belljar completions zsh > \"${fpath[1]}/_belljar\"
  belljar completions fish > ~/.config/fish/completions/belljar.fish")]
pub(crate) struct Arguments {
    /// Which shell
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::Arguments::command(), "belljar", &mut text);
    std::io::Write::write_all(&mut std::io::stdout().lock(), &text).map_err(|source| Silent { source }.into())
}
