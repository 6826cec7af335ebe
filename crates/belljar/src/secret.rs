//! `belljar secret`: credentials that are added to sandboxes' requests outside. On the server's own machine, by whoever is root there: a value
//! never goes through the API.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use belljar_egress::Vault;
use belljar_ports::{Before, Secrets};
use belljar_types::{ProjectId, Secret};

use crate::config::Config;
use crate::{Failure, compose, screen};

/// More than any header takes.
const LONGEST: u64 = 16 << 10;

/// Keep, list and forget secrets of a project (root, on the server's machine)
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Keep a secret, read from standard input
    #[command(after_help = "Example:\n  printf %s \"$KEY\" | belljar secret set model-key")]
    Set(One),
    /// List the names
    #[command(after_help = "Example:\n  belljar secret ls --project default")]
    Ls(Which),
    /// Forget a secret
    #[command(after_help = "Example:\n  belljar secret rm model-key")]
    Rm(One),
}

#[derive(clap::Args)]
pub(crate) struct Which {
    /// The project it belongs to
    #[arg(long, default_value = belljar_core::DEFAULT_PROJECT)]
    project: ProjectId,
    /// The configuration file of the server [default: /etc/belljar/belljar.toml, if it is there]
    #[arg(long, env = "BELLJAR_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// The server's data directory [default: /var/lib/belljar]
    #[arg(long, env = "BELLJAR_DATA_DIR", value_name = "DIRECTORY")]
    data_dir: Option<PathBuf>,
}

#[derive(clap::Args)]
pub(crate) struct One {
    /// Its name
    name: String,
    #[command(flatten)]
    which: Which,
}

/// The secrets of a server.
pub(crate) fn vault(data_dir: &Path) -> std::io::Result<Vault> {
    Vault::open(&data_dir.join("secrets"), &data_dir.join("secret-key"))
}

pub(crate) fn run(command: &Command) -> Result<ExitCode, Failure> {
    compose::require_root()?;
    let which = match command {
        Command::Set(one) | Command::Rm(one) => &one.which,
        Command::Ls(which) => which,
    };
    let config = Config::load(which.config.as_deref())?;
    let data_dir = which.data_dir.clone().unwrap_or_else(|| config.data_dir());
    let vault = vault(&data_dir).map_err(|error| format!("open the secrets of {}: {error}", data_dir.display()))?;
    match command {
        Command::Set(one) => {
            let mut text = String::new();
            std::io::stdin().lock().take(LONGEST).read_to_string(&mut text)?;
            let value = Secret::new(text.trim_end_matches(['\r', '\n']).to_owned());
            vault
                .put(&which.project, &one.name, &value, None, Before::Either)
                .map_err(|error| format!("keep the secret {}: {}", screen::safe(&one.name), belljar_core::chain(&error)))?;
        }
        Command::Ls(_) => {
            for secret in vault.all(&which.project)? {
                screen::line(&secret.name)?;
            }
        }
        Command::Rm(one) => {
            vault
                .remove(&which.project, &one.name)
                .map_err(|error| format!("project {}: {}", which.project, belljar_core::chain(&error)))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
