//! `belljar template`: what sandboxes are made from.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use belljar_client::{Body, BuildLine, ClientError, TemplateView};
use futures_util::{Stream, StreamExt, TryStreamExt};
use tokio_util::io::ReaderStream;

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::screen::{self, Table};
use crate::{moments, progress, units};

/// Make, list and remove what sandboxes are made from
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Build(Build),
    Import(Import),
    Ls(Ls),
    Rm(Rm),
}

/// Make a template from a recipe
///
/// A recipe is a TOML file: what to begin with, packages to install, commands to run. One that is there under the same name is replaced when the new one
/// is complete. docs/guides/templates.md describes recipes.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar template build tools ./tools.toml")]
pub(crate) struct Build {
    /// Name of the template
    name: String,
    /// The recipe
    #[arg(value_name = "FILE")]
    recipe: PathBuf,
    #[command(flatten)]
    how: How,
}

/// Make a template from an archive, or from an image in a registry
///
/// An archive is a tar file with a root filesystem, an image in OCI layout, or what `docker save` writes.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  docker save python:3.13 -o python.tar && belljar template import python ./python.tar
  belljar template import alpine --image registry.example/alpine:3.20")]
#[command(group = clap::ArgGroup::new("source").required(true).args(["archive", "image"]))]
pub(crate) struct Import {
    /// Name of the template
    name: String,
    /// The archive
    #[arg(value_name = "FILE")]
    archive: Option<PathBuf>,
    /// The image's name in a registry, fetched by the server
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    #[command(flatten)]
    how: How,
}

#[derive(clap::Args)]
struct How {
    /// For all projects (needs a key with the scope `admin`)
    #[arg(long)]
    shared: bool,
    #[command(flatten)]
    remote: Remote,
}

/// List templates
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar template ls")]
pub(crate) struct Ls {
    #[command(flatten)]
    remote: Remote,
}

/// Remove a template; sandboxes made from it live on
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar template rm tools && belljar gc")]
pub(crate) struct Rm {
    /// Name of the template
    name: String,
    #[command(flatten)]
    how: How,
}

pub(crate) async fn run(command: Command) -> Result<(), CommandError> {
    match command {
        Command::Build(arguments) => build(arguments).await,
        Command::Import(arguments) => import(arguments).await,
        Command::Ls(arguments) => list(&arguments).await,
        Command::Rm(Rm { name, how }) => {
            let removed = how.remote.client()?.remove_template(&name, how.shared).await;
            removed.map_err(CommandError::asked(format!("remove template {name}")))?;
            if how.remote.json {
                Ok(screen::json(&serde_json::json!({ "removed": name }))?)
            } else {
                Ok(screen::line(&screen::safe(&name))?)
            }
        }
    }
}

async fn build(Build { name, recipe, how }: Build) -> Result<(), CommandError> {
    let client = how.remote.client()?;
    let text = belljar_image::recipe_text(&recipe).map_err(|error| CommandError::Refused(belljar_types::chain(&error)))?;
    let lines = client.build_template(&name, &text, how.shared).await.map_err(attempt(&name))?;
    follow(&name, lines, how.remote.json).await
}

async fn import(Import { name, archive, image, how }: Import) -> Result<(), CommandError> {
    let client = how.remote.client()?;
    match (archive, image) {
        (Some(path), _) => {
            let lines = client.import_template(&name, upload(&path).await?, how.shared).await.map_err(attempt(&name))?;
            follow(&name, lines, how.remote.json).await
        }
        (None, image) => {
            let image = image.unwrap_or_default();
            let lines = client.pull_template(&name, &image, how.shared).await.map_err(attempt(&name))?;
            follow(&name, lines, how.remote.json).await
        }
    }
}

fn attempt(name: &str) -> impl Fn(ClientError) -> CommandError + use<> {
    let text = format!("make template {}", screen::safe(name));
    move |error| CommandError::asked(text.clone())(error)
}

/// A file as a body that is read while it is sent.
async fn upload(path: &Path) -> Result<Body, CommandError> {
    let file = tokio::fs::File::open(path).await.map_err(CommandError::file("open", path))?;
    let size = file.metadata().await.map_err(CommandError::file("measure", path))?.len();
    let bar = progress::bytes(Some(size));
    let counted = ReaderStream::with_capacity(file, 256 << 10).inspect_ok(move |piece| bar.inc(piece.len() as u64));
    Ok(Body::wrap_stream(counted))
}

/// Shows what the server does until the template is made.
async fn follow(name: &str, lines: impl Stream<Item = Result<BuildLine, ClientError>>, json: bool) -> Result<(), CommandError> {
    let spinner = progress::spinner(&format!("making {}", screen::safe(name)));
    let quiet = std::io::stderr().is_terminal();
    let mut lines = std::pin::pin!(lines);
    while let Some(line) = lines.next().await {
        let line = line.map_err(attempt(name))?;
        if json && line != BuildLine::Heartbeat {
            screen::json_line(&line)?;
        }
        match line {
            BuildLine::Heartbeat => {}
            BuildLine::Progress { text } if quiet => spinner.set_message(screen::safe(&text)),
            BuildLine::Progress { text } if !json => screen::remark(&screen::safe(&text)),
            BuildLine::Progress { .. } => {}
            BuildLine::Failed { problem } => return Err(attempt(name)(ClientError::Refused(problem))),
            BuildLine::Done { template } => {
                spinner.finish_and_clear();
                return if json { Ok(()) } else { Ok(screen::line(&screen::safe(&template.name))?) };
            }
        }
    }
    Err(CommandError::Advised {
        what: format!("the server went away while it made template {}", screen::safe(name)),
        hint: "run this again; what was made of it is used, what was there before is still there".to_owned(),
    })
}

async fn list(arguments: &Ls) -> Result<(), CommandError> {
    let templates = arguments.remote.client()?.templates().await.map_err(CommandError::asked("list templates"))?;
    if arguments.remote.json {
        return Ok(screen::json(&templates)?);
    }
    let mut table = Table::new(["NAME", "OWNER", "SIZE", "LAYERS", "MADE", "ORIGIN"]);
    for template in templates {
        table.row(cells(template));
    }
    Ok(table.print()?)
}

fn cells(template: TemplateView) -> [String; 6] {
    [
        template.name,
        template.owner.unwrap_or_else(|| "(all)".to_owned()),
        template.bytes.map_or_else(|| "?".to_owned(), units::size),
        template.layers.len().to_string(),
        moments::relative(&template.created_at),
        template.origin,
    ]
}
