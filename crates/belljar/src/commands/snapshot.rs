//! `belljar snapshot`: what is kept of sandboxes.

mod carrying;

use std::path::PathBuf;
use std::time::Duration;

use belljar_client::{ListSnapshots, NewSnapshot, SnapshotView};
use belljar_types::SandboxId;

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::screen::{self, Table};
use crate::{moments, progress, units};

/// Keep the state of sandboxes, to fork it or to go back to it
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Create(Create),
    Ls(Ls),
    Show(Show),
    Rm(Rm),
    Export(Export),
    Import(Import),
    Push(Push),
    Pull(Pull),
}

/// Take a snapshot of a running or paused sandbox and print its id
///
/// With its memory on the gvisor class, of its files alone on the container class. The sandbox goes on.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  belljar snapshot create sk3v9m2x8c7p4q6w5z2n --name before-upgrade
  belljar snapshot create sk3v9m2x8c7p4q6w5z2n --files-only --expires 7d")]
pub(crate) struct Create {
    /// Id of the sandbox
    sandbox: SandboxId,
    /// What to call it; a name that was given before then means this one
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Keep only its files; what is made from it boots anew
    #[arg(long, conflicts_with = "memory")]
    files_only: bool,
    /// Keep its memory too, or fail
    #[arg(long)]
    memory: bool,
    /// How long it is kept, as in 7d [default: until it is removed]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    expires: Option<Duration>,
    #[command(flatten)]
    remote: Remote,
}

/// List snapshots, newest first
///
/// With --json, one JSON document a line.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar snapshot ls --sandbox sk3v9m2x8c7p4q6w5z2n")]
pub(crate) struct Ls {
    /// Only those of this sandbox
    #[arg(long, value_name = "ID")]
    sandbox: Option<SandboxId>,
    /// Only those with this name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Print ids only
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Show all about a snapshot
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar snapshot show before-upgrade")]
pub(crate) struct Show {
    /// Id or name of the snapshot
    snapshot: String,
    #[command(flatten)]
    remote: Remote,
}

/// Remove snapshots; sandboxes made from them live on
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar snapshot rm before-upgrade")]
pub(crate) struct Rm {
    /// Ids or names of snapshots
    #[arg(required = true, value_name = "SNAPSHOT")]
    snapshots: Vec<String>,
    #[command(flatten)]
    remote: Remote,
}

/// Write a snapshot to one file
///
/// The file is seen when all of it is there.
/// It holds everything that a sandbox is made of, environment and memory included: keep it as you would keep those.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  belljar snapshot export before-upgrade before-upgrade.belljar\n  belljar snapshot export before-upgrade | zstd > before-upgrade.zst"
)]
pub(crate) struct Export {
    /// Id or name of the snapshot
    snapshot: String,
    /// The file; what it held is replaced [default: standard output]
    file: Option<PathBuf>,
    #[command(flatten)]
    remote: Remote,
}

/// Take in a snapshot that was exported, and print its id
///
/// Every digest is checked. One with memory needs a key with the scope admin, and the engine and processor it was taken with.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  belljar snapshot import before-upgrade.belljar\n  ssh other belljar snapshot export warm | belljar snapshot import"
)]
pub(crate) struct Import {
    /// The file [default: standard input]
    file: Option<PathBuf>,
    /// What to call it [default: as it was called]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// How long it is kept, as in 7d [default: until it is removed]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    expires: Option<Duration>,
    #[command(flatten)]
    remote: Remote,
}

/// Put a snapshot where other servers with the same blobs can pull it
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar snapshot push before-upgrade")]
pub(crate) struct Push {
    /// Id or name of the snapshot
    snapshot: String,
    #[command(flatten)]
    remote: Remote,
}

/// Take in a snapshot that this project pushed, here or on another server, and print its id
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar snapshot pull before-upgrade")]
pub(crate) struct Pull {
    /// The name or id it was pushed under
    pushed: String,
    /// What to call it here [default: as it was called]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// How long it is kept, as in 7d [default: until it is removed]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    expires: Option<Duration>,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(command: Command) -> Result<(), CommandError> {
    match command {
        Command::Create(arguments) => create(arguments).await,
        Command::Ls(arguments) => list(arguments).await,
        Command::Show(arguments) => show(&arguments).await,
        Command::Rm(arguments) => remove(&arguments).await,
        Command::Export(arguments) => carrying::export(&arguments).await,
        Command::Import(arguments) => carrying::import(arguments).await,
        Command::Push(arguments) => carrying::push(&arguments).await,
        Command::Pull(arguments) => carrying::pull(arguments).await,
    }
}

async fn create(arguments: Create) -> Result<(), CommandError> {
    let kind = match (arguments.files_only, arguments.memory) {
        (true, _) => Some("filesystem".to_owned()),
        (_, true) => Some("memory".to_owned()),
        _ => None,
    };
    let request = NewSnapshot { name: arguments.name, kind, expires_in_seconds: arguments.expires.map(|time| time.as_secs()) };
    let client = arguments.remote.client()?;
    let taken = progress::waiting("taking the snapshot", client.take_snapshot(&arguments.sandbox, &request)).await;
    let snapshot = taken.map_err(CommandError::asked(format!("take a snapshot of sandbox {}", arguments.sandbox)))?;
    if arguments.remote.json { Ok(screen::json(&snapshot)?) } else { Ok(screen::line(&screen::safe(&snapshot.id))?) }
}

async fn list(arguments: Ls) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let mut which = ListSnapshots { sandbox: arguments.sandbox, name: arguments.name, limit: Some(1000), ..ListSnapshots::default() };
    let mut table = Table::new(["ID", "NAME", "KIND", "SANDBOX", "SIZE", "AGE", "EXPIRES"]);
    loop {
        let page = client.snapshots(&which).await.map_err(CommandError::asked("list snapshots"))?;
        for snapshot in &page.snapshots {
            if arguments.remote.json {
                screen::json_line(snapshot)?;
            } else if arguments.quiet {
                screen::line(&screen::safe(&snapshot.id))?;
            } else {
                table.row(cells(snapshot));
            }
        }
        match page.next_cursor {
            Some(cursor) => which.cursor = Some(cursor),
            None => break,
        }
    }
    if !arguments.remote.json && !arguments.quiet {
        table.print()?;
    }
    Ok(())
}

fn cells(snapshot: &SnapshotView) -> [String; 7] {
    let age = moments::relative(&snapshot.created_at);
    [
        snapshot.id.clone(),
        snapshot.name.clone().unwrap_or_default(),
        snapshot.kind.clone(),
        snapshot.sandbox.clone(),
        units::size(snapshot.bytes),
        age.strip_suffix(" ago").unwrap_or(&age).to_owned(),
        snapshot.expires_at.as_deref().map_or_else(|| "never".to_owned(), moments::relative),
    ]
}

async fn show(arguments: &Show) -> Result<(), CommandError> {
    let found = arguments.remote.client()?.snapshot(&arguments.snapshot).await;
    let snapshot = found.map_err(CommandError::asked("show the snapshot"))?;
    if arguments.remote.json {
        return Ok(screen::json(&snapshot)?);
    }
    let stood_still = Duration::from_micros(snapshot.stood_still_micros);
    let mut lines = vec![("id", snapshot.id.clone())];
    lines.extend(snapshot.name.clone().map(|name| ("name", name)));
    lines.extend([
        ("kind", snapshot.kind.clone()),
        ("isolation", snapshot.isolation.clone()),
        ("sandbox", snapshot.sandbox.clone()),
        ("template", snapshot.template.clone()),
        ("project", snapshot.project.clone()),
        ("size", units::size(snapshot.bytes)),
        ("stood still", format!("{:.1} ms", stood_still.as_secs_f64() * 1000.0)),
        ("taken", moments::relative(&snapshot.created_at)),
        ("expires", snapshot.expires_at.as_deref().map_or_else(|| "never".to_owned(), moments::relative)),
    ]);
    lines.extend(snapshot.parent.clone().map(|parent| ("parent", parent)));
    Ok(screen::pairs(&lines)?)
}

async fn remove(arguments: &Rm) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    for snapshot in &arguments.snapshots {
        client.remove_snapshot(snapshot).await.map_err(CommandError::asked(format!("remove snapshot {}", screen::safe(snapshot))))?;
        if arguments.remote.json {
            screen::json_line(&serde_json::json!({ "removed": snapshot }))?;
        } else {
            screen::line(&screen::safe(snapshot))?;
        }
    }
    Ok(())
}
