//! `belljar volume`: storage that outlives sandboxes.

mod files;

use belljar_client::{NewClone, NewVolume, VolumeView};

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::screen::{self, Table};
use crate::{moments, units};

/// Storage that outlives sandboxes: make, copy, remove and fill volumes
///
/// A sandbox gets one when it is made: `belljar create --volume NAME:/path`.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Create(Create),
    Ls(Ls),
    Show(Show),
    Rm(Rm),
    Clone(CloneArguments),
    Cp(files::Cp),
    Cat(files::Cat),
}

/// Make an empty volume and print its id
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar volume create data --size 5GiB")]
pub(crate) struct Create {
    /// What to call it: A-Z, a-z, 0-9, - and _
    name: String,
    /// What may be written to it, as in 5GiB [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size)]
    size: Option<u64>,
    /// Not an empty volume, but a bucket that the operator set up for this project in the server's configuration
    #[arg(long, value_name = "NAME", conflicts_with = "size")]
    bucket: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

/// List volumes, or what a directory of one holds
///
/// With --json, one JSON document a line.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  belljar volume ls\n  belljar volume ls data:/reports")]
pub(crate) struct Ls {
    /// A directory of a volume, as VOLUME:PATH
    #[arg(value_name = "VOLUME:PATH")]
    directory: Option<String>,
    /// Print names only
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Show all about a volume: what was written to it, and which sandboxes have it
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar volume show data")]
pub(crate) struct Show {
    /// Id or name of the volume
    volume: String,
    #[command(flatten)]
    remote: Remote,
}

/// Remove volumes with all they hold; VOLUME:PATH removes that from a volume
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  belljar volume rm data\n  belljar volume rm data:/reports/old.txt")]
pub(crate) struct Rm {
    /// Ids or names of volumes, or paths in them
    #[arg(required = true, value_name = "VOLUME[:PATH]")]
    volumes: Vec<String>,
    #[command(flatten)]
    remote: Remote,
}

/// Copy a volume as it is now, in constant time, and print the copy's id
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  belljar volume clone data data-experiment
  belljar volume clone data data-2026-11-15 --read-only     keeps this state")]
pub(crate) struct CloneArguments {
    /// Id or name of the volume
    volume: String,
    /// What to call the copy
    name: String,
    /// What may be written to the copy, as in 5GiB [default: as much as to the volume]
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size)]
    size: Option<u64>,
    /// Keep this state for ever
    #[arg(long)]
    read_only: bool,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(command: Command) -> Result<(), CommandError> {
    match command {
        Command::Create(arguments) => create(arguments).await,
        Command::Ls(arguments) => match &arguments.directory {
            Some(directory) => files::list(directory, arguments.quiet, &arguments.remote).await,
            None => list(&arguments).await,
        },
        Command::Show(arguments) => show(&arguments).await,
        Command::Rm(arguments) => remove(&arguments).await,
        Command::Clone(arguments) => copy(arguments).await,
        Command::Cp(arguments) => files::copy(arguments).await,
        Command::Cat(arguments) => files::print(&arguments).await,
    }
}

fn made(volume: &VolumeView, json: bool) -> Result<(), CommandError> {
    if json { Ok(screen::json(volume)?) } else { Ok(screen::line(&screen::safe(&volume.id))?) }
}

async fn create(arguments: Create) -> Result<(), CommandError> {
    let request = NewVolume { name: arguments.name, bucket: arguments.bucket, size_bytes: arguments.size };
    let volume = arguments.remote.client()?.create_volume(&request).await.map_err(CommandError::asked("make the volume"))?;
    made(&volume, arguments.remote.json)
}

async fn copy(arguments: CloneArguments) -> Result<(), CommandError> {
    let request = NewClone { name: arguments.name, size_bytes: arguments.size, read_only: arguments.read_only };
    let copied = arguments.remote.client()?.clone_volume(&arguments.volume, &request).await;
    made(&copied.map_err(CommandError::asked(format!("clone volume {}", screen::safe(&arguments.volume))))?, arguments.remote.json)
}

async fn list(arguments: &Ls) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let mut table = Table::new(["NAME", "ID", "SIZE", "KIND", "AGE"]);
    let mut cursor = None;
    loop {
        let page = client.volumes(cursor.as_deref()).await.map_err(CommandError::asked("list volumes"))?;
        for volume in &page.volumes {
            if arguments.remote.json {
                screen::json_line(volume)?;
            } else if arguments.quiet {
                screen::line(&screen::safe(&volume.name))?;
            } else {
                table.row(cells(volume));
            }
        }
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    if !arguments.remote.json && !arguments.quiet {
        table.print()?;
    }
    Ok(())
}

fn kind(volume: &VolumeView) -> String {
    if volume.read_only { "read-only" } else { "read-write" }.to_owned()
}

fn cells(volume: &VolumeView) -> [String; 5] {
    let age = moments::relative(&volume.created_at);
    let age = age.strip_suffix(" ago").unwrap_or(&age).to_owned();
    [volume.name.clone(), volume.id.clone(), units::size(volume.size_bytes), kind(volume), age]
}

async fn show(arguments: &Show) -> Result<(), CommandError> {
    let found = arguments.remote.client()?.volume(&arguments.volume).await;
    let volume = found.map_err(CommandError::asked("show the volume"))?;
    if arguments.remote.json {
        return Ok(screen::json(&volume)?);
    }
    let holders: Vec<String> = volume.mounted_by.iter().flatten().map(|holder| format!("{} ({})", holder.sandbox, holder.mode)).collect();
    let mut lines = vec![
        ("id", volume.id.clone()),
        ("name", volume.name.clone()),
        ("project", volume.project.clone()),
        ("kind", kind(&volume)),
        ("size", units::size(volume.size_bytes)),
        ("written", volume.used_bytes.map_or_else(String::new, units::size)),
        ("made", moments::relative(&volume.created_at)),
    ];
    lines.extend(volume.origin.clone().map(|origin| ("copy of", origin)));
    lines.push(("mounted by", if holders.is_empty() { "nobody".to_owned() } else { holders.join(", ") }));
    Ok(screen::pairs(&lines)?)
}

async fn remove(arguments: &Rm) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    for which in &arguments.volumes {
        let removed = match which.split_once(':') {
            Some((volume, path)) => client.remove_volume_entry(volume, path).await,
            None => client.remove_volume(which).await,
        };
        removed.map_err(CommandError::asked(format!("remove {}", screen::safe(which))))?;
        if arguments.remote.json {
            screen::json_line(&serde_json::json!({ "removed": which }))?;
        } else {
            screen::line(&screen::safe(which))?;
        }
    }
    Ok(())
}
