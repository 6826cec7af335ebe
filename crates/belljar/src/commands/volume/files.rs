//! Files of volumes without a sandbox: one at a time, streamed, so memory does not grow with what is copied.

use std::io::Write;
use std::path::Path;

use belljar_client::{Body, Client};
use belljar_types::FileKind;
use futures_util::TryStreamExt;
use tokio::io::{AsyncRead, AsyncWriteExt};
use tokio_util::io::ReaderStream;

use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::screen::{self, Silent, Table};
use crate::units;

const PIECE: usize = 256 << 10;
const HINT: &str = "`belljar volume cp --help` has examples";

/// Copy a file into a volume or out of it
///
/// One of the two is VOLUME:PATH, from the volume's root; `-` is standard input or output. Missing directories in the volume are made, and a file that is
/// there is replaced when all of the new one has arrived. To copy directories, mount the volume and use `belljar cp`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  belljar volume cp report.pdf data:/reports/report.pdf
  belljar volume cp data:/reports/report.pdf .
  tar c src | belljar volume cp - data:/src.tar")]
pub(crate) struct Cp {
    /// From where
    #[arg(value_name = "SOURCE")]
    from: String,
    /// To where
    #[arg(value_name = "DESTINATION")]
    to: String,
    #[command(flatten)]
    remote: Remote,
}

/// Print a file of a volume
#[derive(clap::Args)]
#[command(after_help = "Example:\n  belljar volume cat data:/reports/today.txt")]
pub(crate) struct Cat {
    /// The file, as VOLUME:PATH
    #[arg(value_name = "VOLUME:PATH")]
    file: String,
    #[command(flatten)]
    remote: Remote,
}

/// `VOLUME:PATH`; what begins with a dot or a slash is always a file here.
fn in_volume(text: &str) -> Option<(&str, &str)> {
    if text.starts_with(['.', '/']) { None } else { text.split_once(':').filter(|(volume, _)| !volume.is_empty()) }
}

fn wanted(text: &str) -> Result<(&str, &str), CommandError> {
    in_volume(text).ok_or_else(|| CommandError::Usage { what: format!("{} is not VOLUME:PATH", screen::safe(text)), hint: HINT })
}

pub(super) async fn copy(arguments: Cp) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    match (in_volume(&arguments.from), in_volume(&arguments.to)) {
        (None, Some((volume, path))) => upload(&client, &arguments.from, volume, path).await,
        (Some((volume, path)), None) => download(&client, volume, path, &arguments.to).await,
        _ => Err(CommandError::Usage { what: "one of the two has to be VOLUME:PATH, and only one".to_owned(), hint: HINT }),
    }
}

async fn upload(client: &Client, from: &str, volume: &str, path: &str) -> Result<(), CommandError> {
    use std::os::unix::fs::PermissionsExt;
    let (mode, content): (_, Box<dyn AsyncRead + Send + Sync + Unpin>) = if from == "-" {
        (None, Box::new(tokio::io::stdin()))
    } else {
        let file = tokio::fs::File::open(from).await.map_err(CommandError::file("open", from))?;
        let metadata = file.metadata().await.map_err(CommandError::file("look at", from))?;
        if metadata.is_dir() {
            return Err(CommandError::Refused(format!("{} is a directory; mount the volume and use `belljar cp`", screen::safe(from))));
        }
        (Some(metadata.permissions().mode() & 0o777), Box::new(file))
    };
    let mut path = path.to_owned();
    // Into a directory, under its own name.
    if path.is_empty() || path.ends_with('/') {
        let name = Path::new(from).file_name().filter(|_| from != "-").and_then(|name| name.to_str());
        path.push_str(name.ok_or_else(|| CommandError::Refused("the file in the volume needs a name".to_owned()))?);
    }
    let body = Body::wrap_stream(ReaderStream::with_capacity(content, PIECE));
    let written = client.write_volume_file(volume, &path, mode, body).await;
    written.map(drop).map_err(CommandError::asked(format!("write {} in volume {}", screen::safe(&path), screen::safe(volume))))
}

async fn download(client: &Client, volume: &str, path: &str, to: &str) -> Result<(), CommandError> {
    if to == "-" {
        return show(client, volume, path).await;
    }
    let mut target = Path::new(to).to_owned();
    if target.is_dir() {
        let name = path.rsplit('/').next().filter(|name| !matches!(*name, "" | "." | ".."));
        target.push(name.ok_or_else(|| CommandError::Refused(format!("{} names no file", screen::safe(path))))?);
    }
    let read = || CommandError::asked(format!("read {} in volume {}", screen::safe(path), screen::safe(volume)));
    let mut pieces = std::pin::pin!(client.read_volume_file(volume, path).await.map_err(read())?.pieces());
    let mut file = tokio::fs::File::create(&target).await.map_err(CommandError::file("make", &target))?;
    while let Some(piece) = pieces.try_next().await.map_err(read())? {
        file.write_all(&piece).await.map_err(CommandError::file("write", &target))?;
    }
    file.flush().await.map_err(CommandError::file("write", &target))
}

pub(super) async fn print(arguments: &Cat) -> Result<(), CommandError> {
    let (volume, path) = wanted(&arguments.file)?;
    show(&arguments.remote.client()?, volume, path).await
}

async fn show(client: &Client, volume: &str, path: &str) -> Result<(), CommandError> {
    let read = || CommandError::asked(format!("read {} in volume {}", screen::safe(path), screen::safe(volume)));
    let mut pieces = std::pin::pin!(client.read_volume_file(volume, path).await.map_err(read())?.pieces());
    while let Some(piece) = pieces.try_next().await.map_err(read())? {
        std::io::stdout().lock().write_all(&piece).map_err(|source| Silent { source })?;
    }
    Ok(std::io::stdout().lock().flush().map_err(|source| Silent { source })?)
}

pub(super) async fn list(directory: &str, quiet: bool, remote: &Remote) -> Result<(), CommandError> {
    let (volume, path) = wanted(directory)?;
    let listed = remote.client()?.volume_entries(volume, path).await;
    let entries = listed.map_err(CommandError::asked(format!("list {}", screen::safe(directory))))?;
    let mut table = Table::new(["KIND", "MODE", "SIZE", "PATH"]);
    for entry in &entries {
        let shown = String::from_utf8_lossy(&entry.path()).into_owned();
        if remote.json {
            screen::json_line(entry)?;
        } else if quiet {
            screen::line(&screen::safe(&shown))?;
        } else {
            let kind = match entry.kind() {
                FileKind::File => "file",
                FileKind::Directory => "directory",
                FileKind::Symlink => "link",
                FileKind::Other => "other",
            };
            table.row([kind.to_owned(), format!("{:04o}", entry.mode()), units::size(entry.size), shown]);
        }
    }
    if !remote.json && !quiet {
        table.print()?;
    }
    Ok(())
}
