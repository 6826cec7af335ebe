//! `belljar artifact`: files that are taken out of sandboxes to be kept.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use belljar_client::{ArtifactView, NewArtifact};
use belljar_types::{SandboxId, hex};
use futures_util::TryStreamExt;
use sha2::{Digest, Sha256};

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::screen::{self, Table};
use crate::{moments, units};

/// Keep files of sandboxes, and fetch them when the sandboxes are gone
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Keep(Keep),
    Ls(Ls),
    Get(Get),
    Rm(Rm),
}

/// Take a file out of a running sandbox, keep it, and print its id
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar artifact keep sk3v9m2x8c7p4q6w5z2n report.pdf --expires 30d")]
pub(crate) struct Keep {
    /// Id of the sandbox
    sandbox: SandboxId,
    /// Path of the file in it; a relative one begins at the user's home
    path: String,
    /// What to call it [default: as it is called there]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// What it is, as in text/csv [default: as its first bytes look]
    #[arg(long = "type", value_name = "TYPE")]
    media_type: Option<String>,
    /// Who reads it [default: the template's user]
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// How long it is kept, as in 30d [default: until it is removed]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    expires: Option<Duration>,
    #[command(flatten)]
    remote: Remote,
}

/// List artifacts, newest first
///
/// With --json, one JSON document a line.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar artifact ls --sandbox sk3v9m2x8c7p4q6w5z2n")]
pub(crate) struct Ls {
    /// Only those of this sandbox
    #[arg(long, value_name = "ID")]
    sandbox: Option<SandboxId>,
    #[command(flatten)]
    remote: Remote,
}

/// Fetch an artifact, checked against its digest
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  belljar artifact get ak3v9m2x8c7p4q6w5z2n\n  belljar artifact get ak3v9m2x8c7p4q6w5z2n --output out.pdf"
)]
pub(crate) struct Get {
    /// Id of the artifact
    artifact: String,
    /// Where to [default: its name, in this directory]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    remote: Remote,
}

/// Remove artifacts
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar artifact rm ak3v9m2x8c7p4q6w5z2n")]
pub(crate) struct Rm {
    /// Ids of artifacts
    #[arg(required = true, value_name = "ARTIFACT")]
    artifacts: Vec<String>,
    #[command(flatten)]
    remote: Remote,
}

pub(crate) async fn run(command: Command) -> Result<(), CommandError> {
    match command {
        Command::Keep(arguments) => keep(arguments).await,
        Command::Ls(arguments) => list(&arguments).await,
        Command::Get(arguments) => get(&arguments).await,
        Command::Rm(arguments) => remove(&arguments).await,
    }
}

async fn keep(arguments: Keep) -> Result<(), CommandError> {
    let request = NewArtifact {
        path: arguments.path,
        user: arguments.user,
        name: arguments.name,
        media_type: arguments.media_type,
        expires_in_seconds: arguments.expires.map(|time| time.as_secs()),
    };
    let kept = arguments.remote.client()?.keep_file(&arguments.sandbox, &request).await;
    let artifact = kept.map_err(CommandError::asked(format!("keep a file of sandbox {}", arguments.sandbox)))?;
    if arguments.remote.json { Ok(screen::json(&artifact)?) } else { Ok(screen::line(&screen::safe(&artifact.id))?) }
}

async fn list(arguments: &Ls) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let mut table = Table::new(["ID", "NAME", "SIZE", "TYPE", "SANDBOX", "AGE"]);
    let mut cursor: Option<String> = None;
    loop {
        let page = client.artifacts(arguments.sandbox.as_ref(), cursor.as_deref()).await.map_err(CommandError::asked("list artifacts"))?;
        for artifact in &page.artifacts {
            if arguments.remote.json {
                screen::json_line(artifact)?;
            } else {
                table.row(cells(artifact));
            }
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    if arguments.remote.json { Ok(()) } else { Ok(table.print()?) }
}

fn cells(artifact: &ArtifactView) -> [String; 6] {
    let age = moments::relative(&artifact.created_at);
    [
        artifact.id.clone(),
        artifact.name.clone(),
        units::size(artifact.bytes),
        artifact.media_type.clone(),
        artifact.sandbox.clone(),
        age.strip_suffix(" ago").unwrap_or(&age).to_owned(),
    ]
}

async fn get(arguments: &Get) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let asked = || CommandError::asked("fetch the artifact");
    let artifact = client.artifact(&arguments.artifact).await.map_err(asked())?;
    // The name comes from inside a sandbox: it stays in this directory, whatever it is.
    let target = arguments.output.clone().unwrap_or_else(|| PathBuf::from(screen::safe(&artifact.name).replace('/', "_")));
    let failed = |operation| CommandError::file(operation, target.clone());
    let mut file = std::fs::File::create_new(&target).map_err(failed("make"))?;
    let mut digest = Sha256::new();
    let mut pieces = std::pin::pin!(client.artifact_content(&artifact.id).await.map_err(asked())?);
    while let Some(piece) = pieces.try_next().await.map_err(asked())? {
        digest.update(&piece);
        file.write_all(&piece).map_err(failed("write"))?;
    }
    if hex(&digest.finalize()) != artifact.sha256 {
        std::fs::remove_file(&target).map_err(failed("remove"))?;
        return Err(CommandError::Refused(format!("what came is not artifact {}: its digest is another", screen::safe(&artifact.id))));
    }
    Ok(screen::line(&target.display().to_string())?)
}

async fn remove(arguments: &Rm) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    for artifact in &arguments.artifacts {
        client.remove_artifact(artifact).await.map_err(CommandError::asked(format!("remove artifact {}", screen::safe(artifact))))?;
        if arguments.remote.json {
            screen::json_line(&serde_json::json!({ "removed": artifact }))?;
        } else {
            screen::line(&screen::safe(artifact))?;
        }
    }
    Ok(())
}
