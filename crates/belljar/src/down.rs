//! `belljar down`: the end of a server and of everything it holds on the machine. Stopping a server alone leaves its sandboxes running, which
//! is what an upgrade wants; this is for whoever wants the machine back as it was.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use belljar_linux::pidfd;

use crate::config::{Config, DEFAULT_DATA_DIR};
use crate::serve::ServerFile;
use crate::{Failure, compose};

/// Longer than a server takes to let its requests finish.
const PATIENCE: Duration = Duration::from_secs(60);

/// Stop the server, end every sandbox, and unmount everything
///
/// Templates, keys and the record of what was stay in the data directory; the next `belljar serve` finds them there.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar down --data-dir /var/lib/belljar")]
pub(crate) struct Arguments {
    /// The configuration file of the server [default: /etc/belljar/belljar.toml, if it is there]
    #[arg(long, env = "BELLJAR_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// The server's data directory [default: /var/lib/belljar]
    #[arg(long, env = "BELLJAR_DATA_DIR", value_name = "DIRECTORY")]
    data_dir: Option<PathBuf>,
    /// The static agent; looked for beside this program when not given
    #[arg(long, env = "BELLJAR_GUEST", value_name = "FILE")]
    guest: Option<PathBuf>,
}

/// Stops and removes everything, and says what it found.
#[expect(clippy::print_stdout, reason = "what was done is the command's output")]
pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    compose::require_root()?;
    let mut config = Config::load(arguments.config.as_deref())?;
    config.data_dir = arguments.data_dir.or(config.data_dir);
    config.host.guest = arguments.guest.or(config.host.guest);
    let data_dir = config.data_dir();
    if !data_dir.exists() {
        println!("there is nothing at {} (the default is {DEFAULT_DATA_DIR})", data_dir.display());
        return Ok(ExitCode::SUCCESS);
    }
    if stop_server(&data_dir)? {
        println!("stopped the server");
    }
    let machine = compose::open(&data_dir, &config.host, 0).await?;
    let mut ended = 0;
    for engine in &machine.engines {
        for found in engine.inventory().await? {
            engine.destroy(&found.id).await?;
            ended += 1;
        }
    }
    machine.host.settle().await;
    machine.host.close().await?;
    println!("ended {ended} sandboxes; nothing is mounted any more. What was made is kept in {}", data_dir.display());
    Ok(ExitCode::SUCCESS)
}

/// Asks the server of this data directory to stop, and waits for it. Says whether there was one.
fn stop_server(data_dir: &Path) -> Result<bool, Failure> {
    let Some(file) = ServerFile::read(data_dir) else { return Ok(false) };
    // Held open before it is looked at: the number cannot pass to another process in between.
    let Ok(process) = pidfd::open(file.pid) else { return Ok(false) };
    if !is_this_program(file.pid) {
        return Ok(false);
    }
    pidfd::terminate(process.as_fd())?;
    if !pidfd::wait(process.as_fd(), PATIENCE)? {
        return Err(format!(
            "the server (process {}) did not stop within {} s; its log says what it waits for",
            file.pid,
            PATIENCE.as_secs()
        )
        .into());
    }
    Ok(true)
}

/// A file from before a restart of the machine may name somebody else's process.
fn is_this_program(pid: u32) -> bool {
    let name = |path: PathBuf| path.file_name().map(|name| name.to_string_lossy().trim_end_matches(" (deleted)").to_owned());
    let theirs = std::fs::read_link(format!("/proc/{pid}/exe")).ok().and_then(name);
    let ours = std::env::current_exe().ok().and_then(name);
    theirs.is_some() && theirs == ours
}
