//! The command line of the guard, and what is said at its end.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use belljar_types::escape_untrusted;

use crate::limits::Limits;
use crate::{GuardError, Network, Outcome, Request};

/// Run one command in a throw-away sandbox over the current directory
///
/// The command sees this directory (read-only, or writable with --rw), the machine's programs and nothing else: no home, no other files, no
/// network, no other processes, no variables but a few. Secrets in the directory (.env, .ssh, .npmrc …) are hidden; with --rw, files that
/// run by themselves (.git/hooks, .vscode, .bashrc …) cannot be changed. Needs no server, and no root where user namespaces are allowed.
///
/// The exit code is the command's own, or 128+n if signal n ended it; 124: --timeout passed; 125: the guard failed and nothing ran;
/// 126: the command cannot be executed; 127: it was not found.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  belljar run -- make test                          tests of a repository that you have not read
  belljar run --rw --timeout 10m -- npm run build   let it write here, for ten minutes at most
  belljar run --rw --allow .env -- ./manage.py check   show it one secret")]
pub struct Arguments {
    /// Let the command write to the current directory
    #[arg(long)]
    rw: bool,
    /// The network: none, or the host's own (which then is not guarded at all)
    #[arg(long, value_name = "NETWORK", default_value = "none", value_parser = parse_network)]
    net: Network,
    /// Show one more path, read-only; can be repeated
    #[arg(long, value_name = "PATH")]
    ro: Vec<PathBuf>,
    /// Lift the protection of one path below the current directory; can be repeated
    #[arg(long, value_name = "PATH")]
    allow: Vec<PathBuf>,
    /// Pass a variable on, or set it; can be repeated
    #[arg(long, short, value_name = "NAME[=VALUE]")]
    env: Vec<OsString>,
    /// Use a template of the server as the root, instead of this machine's programs (root only)
    #[arg(long, value_name = "TEMPLATE")]
    template: Option<String>,
    /// Where the server keeps its templates
    #[arg(long, value_name = "DIR", env = "BELLJAR_DATA_DIR", default_value = "/var/lib/belljar")]
    data_dir: PathBuf,
    /// The most memory, as in 512MiB or 2G (root only)
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<u64>,
    /// The most processors, for example 1.5 (root only)
    #[arg(long, value_name = "NUMBER", value_parser = parse_cpus)]
    cpus: Option<u32>,
    /// The most processes and threads
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pids: Option<u32>,
    /// End the command after this time, as in 90s or 5m; a bare number is seconds
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    timeout: Option<Duration>,
    /// Tell on standard error what is shown and what is protected
    #[arg(long, short)]
    verbose: bool,
    /// For programs: changes nothing, because standard output is the command's alone
    #[arg(long, hide = true)]
    json: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

fn parse_network(text: &str) -> Result<Network, String> {
    match text {
        "none" => Ok(Network::None),
        "host" => Ok(Network::Host),
        _ => Err("expected none or host".to_owned()),
    }
}

fn parse_size(text: &str) -> Result<u64, String> {
    let bytes = belljar_types::parse_bytes("memory", text).ok().filter(|bytes| *bytes >= 1 << 20);
    bytes.ok_or_else(|| "expected at least 1MiB, for example 512MiB or 2G".to_owned())
}

fn parse_cpus(text: &str) -> Result<u32, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.01..=4096.0).contains(number));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 10 and 4096000")]
    number.map(|number| (number * 1000.0).round() as u32).ok_or_else(|| "expected a number from 0.01, for example 1.5".to_owned())
}

fn parse_time(text: &str) -> Result<Duration, String> {
    let time = belljar_types::parse_duration("timeout", text).ok();
    let time = time.filter(|time| (Duration::from_millis(1)..=Duration::from_secs(365 * 86_400)).contains(time));
    time.ok_or_else(|| "expected a time from 1ms to 365d, for example 90s, 5m or 1.5h".to_owned())
}

impl From<Arguments> for Request {
    fn from(arguments: Arguments) -> Self {
        Self {
            command: arguments.command,
            template: arguments.template,
            data_dir: arguments.data_dir,
            writable: arguments.rw,
            network: arguments.net,
            shown: arguments.ro,
            environment: arguments.env,
            allowed: arguments.allow,
            limits: Limits { memory_bytes: arguments.memory, cpu_millis: arguments.cpus, pids: arguments.pids },
            timeout: arguments.timeout,
            verbose: arguments.verbose,
        }
    }
}

const GUARD_FAILED: u8 = 125;

/// Runs the command and says how it ended, as an exit code. Must be called before this process has a second thread.
pub fn run(arguments: Arguments) -> ExitCode {
    match crate::run(arguments.into()) {
        Ok(Outcome { code, notes }) => {
            for note in notes {
                say(&note);
            }
            ExitCode::from(code)
        }
        Err(error) => {
            say(&told(&error));
            ExitCode::from(GUARD_FAILED)
        }
    }
}

fn told(error: &GuardError) -> String {
    let mut words = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        words.push_str(&format!(" ({cause})"));
        source = cause.source();
    }
    words
}

/// One line on standard error. Paths in it may be the work of whoever wrote the tree.
#[expect(clippy::print_stderr, reason = "this is where the guard talks to the person at the terminal")]
pub(crate) fn say(words: &str) {
    eprintln!("belljar run: {}", escape_untrusted(words.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_people_write_them() {
        for (text, bytes) in
            [("512M", 512 << 20), ("2g", 2 << 30), ("2048K", 2 << 20), ("1048576", 1 << 20), ("512MiB", 512 << 20), ("1.5GiB", 3 << 29)]
        {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        assert_eq!(parse_cpus("1.5"), Ok(1500));
        for (text, millis) in [("0.5", 500), ("600", 600_000), ("90s", 90_000), ("5m", 300_000), ("3m20s", 200_000)] {
            assert_eq!(parse_time(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for nonsense in ["", "M", "12", "1000K", "-1", "x", "NaN", "99999999999999999999G"] {
            assert!(parse_size(nonsense).is_err(), "{nonsense}");
        }
        for nonsense in ["", "0", "-1", "NaN", "inf"] {
            assert!(parse_cpus(nonsense).is_err() && parse_time(nonsense).is_err(), "{nonsense}");
        }
    }
}
