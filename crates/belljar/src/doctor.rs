//! `belljar doctor`: every engine is really tried out, and what does not work comes with its fix.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use belljar_core::{DoctorReport, SharedKernel};
use belljar_host::{Host, HostError};
use belljar_image::LayerStore;
use belljar_ports::Runtime;
use belljar_runtime_container::{ContainerConfig, ContainerRuntime};
use belljar_runtime_gvisor::{GvisorConfig, GvisorRuntime};
use belljar_types::{Check, EngineReport, IsolationClass};

use crate::config::Config;
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
    /// The configuration file of the server [default: /etc/belljar/belljar.toml, if it is there]
    #[arg(long, env = "BELLJAR_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where Belljar keeps its layers and sandboxes [default: /var/lib/belljar]
    #[arg(long, env = "BELLJAR_DATA_DIR", value_name = "DIRECTORY")]
    data_dir: Option<PathBuf>,
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

impl Arguments {
    /// What a server with these settings would have, so that the report is about that server.
    fn config(&self) -> Result<Config, Failure> {
        let mut config = Config::load(self.config.as_deref())?;
        config.data_dir = self.data_dir.clone().or(config.data_dir);
        config.host.guest = self.guest.clone().or(config.host.guest);
        config.sandboxes.allow_shared_kernel |= self.allow_shared_kernel;
        Ok(config)
    }
}

/// Probes everything and prints the report.
#[expect(clippy::print_stdout, reason = "the report is the command's output")]
pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    compose::require_root()?;
    let config = arguments.config()?;
    let shared = if config.sandboxes.allow_shared_kernel { SharedKernel::Allowed } else { SharedKernel::Refused };
    let host = compose::host_config(&config.data_dir(), &config.host, config.network.filtered_slots());
    let host = Host::open(host).await.map_err(with_a_way_out)?;
    if let Some(agent) = config.host.guest.or_else(agent_beside_this_program) {
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

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};

    use super::*;

    /// What is looked at when these words are typed.
    fn config(words: &[&str]) -> Config {
        let command = Arguments::augment_args(clap::Command::new("doctor"));
        let matches = command.try_get_matches_from([&["doctor"], words].concat()).unwrap();
        Arguments::from_arg_matches(&matches).unwrap().config().unwrap()
    }

    #[test]
    fn it_looks_at_the_machine_as_the_server_would_use_it() {
        let directory = tempfile::tempdir().unwrap();
        let (file, guest) = (directory.path().join("belljar.toml"), Some(PathBuf::from("/opt/guest")));
        let text = "data_dir = \"/srv/belljar\"\n[sandboxes]\nallow_shared_kernel = true\n[host]\nguest = \"/opt/guest\"\nopen_slots = 0";
        std::fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        let slots = |config: &Config| compose::host_config(&config.data_dir(), &config.host, config.network.filtered_slots()).open_slots;

        let config_of_file = config(&["--config", file]);
        assert_eq!((config_of_file.data_dir(), slots(&config_of_file)), ("/srv/belljar".into(), 0));
        assert!(config_of_file.sandboxes.allow_shared_kernel && config_of_file.host.guest == guest);
        assert_eq!(config(&["--config", file, "--data-dir", "/elsewhere"]).data_dir(), PathBuf::from("/elsewhere"));

        std::fs::write(file, "").unwrap();
        assert_eq!(slots(&config(&["--config", file])), 1, "the server offers open networking unless told otherwise");
        assert!(config(&["--config", file, "--allow-shared-kernel"]).sandboxes.allow_shared_kernel);
    }
}
