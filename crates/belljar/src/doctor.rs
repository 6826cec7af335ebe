//! `belljar doctor`: every engine is really tried out, and what does not work comes with its fix.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use belljar_core::{DoctorReport, SharedKernel};
use belljar_host::{Host, HostConfig};
use belljar_image::LayerStore;
use belljar_ports::Runtime;
use belljar_runtime_container::{ContainerConfig, ContainerRuntime};
use belljar_runtime_gvisor::{GvisorConfig, GvisorRuntime};
use belljar_types::{Check, EngineReport, IsolationClass};

/// Try out what this machine can do and say what to mend.
///
/// Ends with code 0 if a sandbox can be made, 2 if not.
#[derive(clap::Args)]
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
pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let shared = if arguments.allow_shared_kernel { SharedKernel::Allowed } else { SharedKernel::Refused };
    let host = Host::open(HostConfig::new(&arguments.data_dir)).await?;
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
    host.close().await?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    Ok(if report.usable() { ExitCode::SUCCESS } else { ExitCode::from(2) })
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
