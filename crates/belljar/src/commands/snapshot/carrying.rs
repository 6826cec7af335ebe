//! Snapshots on their way to other servers, and from them.

use std::fs::OpenOptions;
use std::io::{IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use belljar_client::{Body, NewImport, SnapshotView};
use futures_util::TryStreamExt;
use tokio_util::io::ReaderStream;

use super::{Export, Import, Pull, Push};
use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::{progress, screen, units};

const PIECE: usize = 256 << 10;

pub(super) async fn export(arguments: &Export) -> Result<(), CommandError> {
    match &arguments.file {
        Some(path) if path.as_os_str() != "-" => export_into(arguments, path).await,
        _ => {
            let mut out = std::io::stdout().lock();
            if out.is_terminal() {
                return Err(CommandError::Refused("a snapshot is no text for a terminal: add a FILE".to_owned()));
            }
            copy(arguments, &mut out, Path::new("standard output")).await
        }
    }
}

/// Beside it first, and moved into its place when all of it is on the disk.
async fn export_into(arguments: &Export, path: &Path) -> Result<(), CommandError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let beside = path.with_file_name(name);
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside).map_err(CommandError::file("make", &beside))?;
    let written = async {
        copy(arguments, &mut file, path).await?;
        file.sync_all().map_err(CommandError::file("write to", path))?;
        std::fs::rename(&beside, path).map_err(CommandError::file("replace", path))
    };
    let written = written.await;
    if written.is_err() {
        // What went wrong before is what is to be told.
        let _removed = std::fs::remove_file(&beside);
    }
    written
}

async fn copy(arguments: &Export, out: &mut impl Write, name: &Path) -> Result<(), CommandError> {
    let asked = || CommandError::asked(format!("export snapshot {}", screen::safe(&arguments.snapshot)));
    let client = arguments.remote.client()?;
    let mut pieces = std::pin::pin!(client.export_snapshot(&arguments.snapshot).await.map_err(asked())?);
    while let Some(piece) = pieces.try_next().await.map_err(asked())? {
        out.write_all(&piece).map_err(CommandError::file("write to", name))?;
    }
    out.flush().map_err(CommandError::file("write to", name))
}

pub(super) async fn import(arguments: Import) -> Result<(), CommandError> {
    let body = match &arguments.file {
        Some(path) if path.as_os_str() != "-" => {
            let file = tokio::fs::File::open(path).await.map_err(CommandError::file("open", path))?;
            let size = file.metadata().await.map_err(CommandError::file("measure", path))?.len();
            let bar = progress::bytes(Some(size));
            Body::wrap_stream(ReaderStream::with_capacity(file, PIECE).inspect_ok(move |piece| bar.inc(piece.len() as u64)))
        }
        _ => Body::wrap_stream(ReaderStream::with_capacity(tokio::io::stdin(), PIECE)),
    };
    let how = NewImport { name: arguments.name, expires_in_seconds: arguments.expires.map(|time| time.as_secs()) };
    let taken = arguments.remote.client()?.import_snapshot(body, &how).await;
    tell(&arguments.remote, &taken.map_err(CommandError::asked("import the snapshot"))?)
}

pub(super) async fn push(arguments: &Push) -> Result<(), CommandError> {
    let client = arguments.remote.client()?;
    let pushed = progress::waiting("sending the snapshot", client.push_snapshot(&arguments.snapshot)).await;
    let pushed = pushed.map_err(CommandError::asked(format!("push snapshot {}", screen::safe(&arguments.snapshot))))?;
    if arguments.remote.json {
        return Ok(screen::json(&pushed)?);
    }
    Ok(screen::line(&format!("{} ({})", screen::safe(&pushed.name), units::size(pushed.bytes)))?)
}

pub(super) async fn pull(arguments: Pull) -> Result<(), CommandError> {
    let how = NewImport { name: arguments.name, expires_in_seconds: arguments.expires.map(|time| time.as_secs()) };
    let client = arguments.remote.client()?;
    let taken = progress::waiting("fetching the snapshot", client.pull_snapshot(&arguments.pushed, &how)).await;
    let asked = CommandError::asked(format!("pull snapshot {}", screen::safe(&arguments.pushed)));
    tell(&arguments.remote, &taken.map_err(asked)?)
}

fn tell(remote: &Remote, snapshot: &SnapshotView) -> Result<(), CommandError> {
    if remote.json { Ok(screen::json(snapshot)?) } else { Ok(screen::line(&screen::safe(&snapshot.id))?) }
}
