//! `belljar project`: groups of keys and sandboxes that see nothing of each other.

use belljar_client::{NewQuota, Project};

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::screen::{self, Table};
use crate::{moments, units};

/// Make, list, limit and remove projects (needs a key with the scope `admin`)
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Add(Set),
    Ls(Ls),
    Rm(Rm),
    Quota(Quota),
}

/// Make a project
///
/// Keys and sandboxes of a project see nothing of other projects'. Then: `belljar key add --project NAME`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar project add team-a --sandboxes 20 --memory 32GiB")]
pub(crate) struct Set {
    /// Name of the project: 1 to 40 of a-z, 0-9 and '-'
    #[arg(value_name = "NAME")]
    project: String,
    #[command(flatten)]
    quota: Amounts,
    #[command(flatten)]
    remote: Remote,
}

/// Show or change how much a project may have at one time
///
/// What is not named stays as it is.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  belljar project quota team-a
  belljar project quota team-a --sandboxes 50")]
pub(crate) struct Quota {
    /// Name of the project
    #[arg(value_name = "NAME")]
    project: String,
    #[command(flatten)]
    quota: Amounts,
    #[command(flatten)]
    remote: Remote,
}

#[derive(clap::Args, Clone, Copy)]
struct Amounts {
    /// Sandboxes at one time
    #[arg(long, value_name = "NUMBER")]
    sandboxes: Option<u32>,
    /// Cores of all its sandboxes together
    #[arg(long, value_name = "CORES", value_parser = units::parse_cores)]
    cpu: Option<u32>,
    /// Memory of all its sandboxes together, as in 32GiB
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size)]
    memory: Option<u64>,
    /// Disk of all its sandboxes together, as in 100GiB
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size)]
    disk: Option<u64>,
}

impl From<Amounts> for NewQuota {
    fn from(amounts: Amounts) -> Self {
        Self {
            sandboxes: amounts.sandboxes,
            cpu_millis: amounts.cpu.map(u64::from),
            memory_bytes: amounts.memory,
            disk_bytes: amounts.disk,
        }
    }
}

/// List projects
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar project ls")]
pub(crate) struct Ls {
    #[command(flatten)]
    remote: Remote,
}

/// Remove a project, its keys with it; it must have no live sandboxes
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar project rm team-a")]
pub(crate) struct Rm {
    /// Name of the project
    #[arg(value_name = "NAME")]
    project: String,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(command: Command) -> Result<(), CommandError> {
    match command {
        Command::Add(Set { project, quota, remote }) => {
            let made = remote.client()?.add_project(&project, quota.into()).await.map_err(CommandError::asked("make the project"))?;
            if remote.json { Ok(screen::json(&made)?) } else { Ok(screen::line(&screen::safe(&made.id))?) }
        }
        Command::Quota(Quota { project, quota, remote }) => {
            let client = remote.client()?;
            let asked = NewQuota::from(quota);
            let attempt = CommandError::asked("show or change the quota");
            let project = match asked == NewQuota::default() {
                true => client.project(&project).await.map_err(attempt)?,
                false => client.set_quota(&project, asked).await.map_err(attempt)?,
            };
            print(&[project], remote.json)
        }
        Command::Ls(Ls { remote }) => {
            let projects = remote.client()?.projects().await.map_err(CommandError::asked("list projects"))?;
            if remote.json { Ok(screen::json(&projects)?) } else { print(&projects, false) }
        }
        Command::Rm(Rm { project, remote }) => {
            remote.client()?.remove_project(&project).await.map_err(CommandError::asked("remove the project"))?;
            if remote.json {
                Ok(screen::json(&serde_json::json!({ "removed": project }))?)
            } else {
                Ok(screen::line(&screen::safe(&project))?)
            }
        }
    }
}

fn print(projects: &[Project], json: bool) -> Result<(), CommandError> {
    if let ([project], true) = (projects, json) {
        return Ok(screen::json(project)?);
    }
    let mut table = Table::new(["NAME", "SANDBOXES", "CORES", "MEMORY", "DISK", "MADE"]);
    for project in projects {
        let quota = &project.quota;
        table.row([
            project.id.clone(),
            quota.sandboxes.to_string(),
            units::cores(quota.cpu_millis),
            units::size(quota.memory_bytes),
            units::size(quota.disk_bytes),
            moments::relative(&project.created_at),
        ]);
    }
    Ok(table.print()?)
}
