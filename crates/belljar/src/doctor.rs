//! `belljar doctor`: every engine is really tried out, and what does not work comes with its fix.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use belljar_core::{DoctorReport, SharedKernel};
use belljar_host::{Host, HostConfig, HostError};
use belljar_image::LayerStore;
use belljar_ports::Runtime;
use belljar_runtime_container::{ContainerConfig, ContainerRuntime};
use belljar_runtime_gvisor::{GvisorConfig, GvisorRuntime};
use belljar_types::{Check, EngineReport, IsolationClass};

use crate::{Failure, compose};

/// Try out what this machine can do and say what to mend
///
/// It makes a sandbox of every class, so it needs root and a data directory that no server is using. A server that runs tells the same
/// about its engines: `GET /v1/server`.
///
/// Ends with code 0 if a sandbox can be made, 2 if not, 1 if it could not look.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar doctor\n  belljar doctor --data-dir /tmp/belljar-doctor   while a server runs")]
pub(crate) struct Arguments {
    /// Where Belljar keeps its layers and sandboxes
    #[arg(long, env = "BELLJAR_DATA_DIR", default_value = "/var/lib/belljar", value_name = "DIRECTORY")]
    data_dir: PathBuf,
    /// The static agent that is put into sandboxes; looked for beside this program when not given
    #[arg(long, env = "BELLJAR_GUEST", value_name = "FILE")]
    guest: Option<PathBuf>,
    /// Count classes that share the host's kernel as usable
    #[arg(long)]
    allow_shared_kernel: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// Probes everything and prints the report.
#[expect(clippy::print_stdout, reason = "the report is the command's output")]
pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    compose::require_root()?;
    let shared = if arguments.allow_shared_kernel { SharedKernel::Allowed } else { SharedKernel::Refused };
    let host = Host::open(HostConfig::new(&arguments.data_dir)).await.map_err(with_a_way_out)?;
    if let Some(agent) = arguments.guest.or_else(agent_beside_this_program) {
        host.set_agent_layer(LayerStore::open(host.pool_directory())?.agent_layer(&agent)?);
    }
    let engines: [Arc<dyn Runtime>; 2] = [
        Arc::new(GvisorRuntime::new(Arc::clone(&host), GvisorConfig::default())),
        Arc::new(ContainerRuntime::new(Arc::clone(&host), ContainerConfig::default())),
    ];
    let mut reports = vec![no_microvm_engine()];
    for engine in engines {
        reports.push(engine.probe().await);
    }
    let report = DoctorReport::new(host.checks(), reports, shared);
    match host.close().await {
        // Sandboxes of a server that is not running at the moment: the next start takes them over.
        Ok(()) | Err(HostError::InUse { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    Ok(if report.usable() { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

/// The usual reason not to get in is that the server is there, and then nothing is wrong.
fn with_a_way_out(error: HostError) -> Failure {
    match error {
        HostError::Locked { path } => {
            let directory = path.parent().unwrap_or(&path).display();
            format!(
                "a server uses {directory}, so it cannot be looked at from here: ask that server (GET /v1/server), \
                 or try the engines in another place with --data-dir"
            )
            .into()
        }
        other => other.into(),
    }
}

fn agent_beside_this_program() -> Option<PathBuf> {
    let agent = std::env::current_exe().ok()?.with_file_name("belljar-guest");
    agent.exists().then_some(agent)
}

/// The strongest class is named although this version cannot provide it, so that nobody wonders why it was passed over.
fn no_microvm_engine() -> EngineReport {
    EngineReport {
        class: IsolationClass::Microvm,
        version: "not part of this version".to_owned(),
        age_days: None,
        checks: vec![Check::fail("engine", "this version has no microVM engine", "")],
    }
}
