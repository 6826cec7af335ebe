//! The agent inside a sandbox: pid 1 there, and `sudo` or `belljar-keep` when called by those names.
//!
//! ```text
//!  main ── called as sudo? ──▶ sudo client: hands its command to the agent over a local socket
//!    ├─ called as belljar-keep? ──▶ its client: asks the agent over a local socket to have a file kept
//!    └─ boot: read and remove /.belljar/boot, hide, settle
//!        └─ one thread: reaper │ listener ─▶ a task per connection ─▶ verbs │ sudo server │ keep server │ signals
//!            └─ a few threads for files and starts, which may block
//! ```
//!
//! It is static and small, because it goes into every sandbox whatever is installed there:
//!
//! ```sh
//! RUSTFLAGS="-C target-feature=+crt-static" cargo build --profile guest -p belljar-guest --target x86_64-unknown-linux-gnu
//! ```
//!
//! It trusts nobody: not the programs in the sandbox, which may have become root there, and of those who connect only whoever proves to know the token.

mod agent;
mod blocking;
mod boot;
mod call;
mod files;
mod keep;
mod listen;
mod metrics;
mod peer;
mod ports;
mod process;
mod quiet;
mod session;
mod shell;
mod sudo;
mod users;
mod verbs;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use belljar_linux::late_free::LateFree;
use belljar_linux::memory::keep_freed;
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::LocalSet;

use crate::agent::Agent;
use crate::boot::{Options, StartError};
use crate::listen::Door;

/// A restore by gVisor can bring back reports about files that are gone.
#[global_allocator]
static MEMORY: LateFree = LateFree::new();

/// How long processes have to end after the sandbox was told to.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Memory that a file passed through and the next one will pass through. Every sandbox pays for it, if files of this size are moved there.
const KEPT_MEMORY: i32 = 2 << 20;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    match Path::new(&name).file_name().and_then(|name| name.to_str()) {
        Some("sudo") => return sudo::main(arguments),
        Some("belljar-keep") => return keep::main(arguments),
        _ => {}
    }
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: impl Iterator<Item = std::ffi::OsString>) -> Result<(), StartError> {
    let options = Options::parse(arguments)?;
    let config = boot::take_config(&options.boot)?;
    boot::settle(&config);
    keep_freed(KEPT_MEMORY, 1);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(blocking::THREADS)
        .build()
        .map_err(StartError::Runtime)?;
    LocalSet::new().block_on(&runtime, live(options, Agent::new(config)))
}

/// Lives until the sandbox is told to end.
async fn live(options: Options, agent: Rc<Agent>) -> Result<(), StartError> {
    let door = Door::open(options.listen).map_err(|source| StartError::Listen { place: options.listen, source })?;
    tokio::task::spawn_local(Rc::clone(&agent.processes.reaper).run());
    tokio::task::spawn_local(listen::serve(Rc::clone(&agent), door));
    tokio::task::spawn_local(offer_sudo(Rc::clone(&agent), options.sudo_socket));
    tokio::task::spawn_local(offer_keep(Rc::clone(&agent), options.keep_socket));
    let mut terminate = signal(SignalKind::terminate()).map_err(StartError::Runtime)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(StartError::Runtime)?;
    let told = tokio::select! {
        _ = terminate.recv() => Signal::TERM,
        _ = interrupt.recv() => Signal::INT,
    };
    agent.processes.signal_all(told);
    tokio::time::sleep(LAST_WORDS).await;
    Ok(())
}

/// A sandbox whose root cannot be written to has no `sudo`, which is no reason to have no sandbox.
async fn offer_sudo(agent: Rc<Agent>, socket: PathBuf) {
    if let Err(source) = sudo::serve(agent, &socket).await {
        report(&StartError::Sudo { path: socket, source });
    }
}

async fn offer_keep(agent: Rc<Agent>, socket: PathBuf) {
    if let Err(source) = keep::serve(agent, &socket).await {
        report(&StartError::Keep { path: socket, source });
    }
}

#[expect(clippy::print_stderr, reason = "the engine keeps what the agent says before it can be asked")]
fn report(error: &StartError) {
    eprintln!("belljar-guest: could not {error}");
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        eprintln!("  because: {cause}");
        source = cause.source();
    }
}
