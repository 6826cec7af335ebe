//! Snapshots on their way to other servers, and from them.

use std::io::{IsTerminal, Write};

use belljar_client::{Body, NewImport, SnapshotView};
use futures_util::TryStreamExt;
use tokio_util::io::ReaderStream;

use super::{Export, Import, Pull, Push};
use crate::command_error::CommandError;
use crate::remote::Remote;
use crate::{progress, screen, units};

const PIECE: usize = 256 << 10;

pub(super) async fn export(arguments: &Export) -> Result<(), CommandError> {
    let mut out = std::io::stdout().lock();
    if out.is_terminal() {
        return Err(CommandError::Refused("a snapshot is no text for a terminal: add > FILE".to_owned()));
    }
    let asked = || CommandError::asked(format!("export snapshot {}", screen::safe(&arguments.snapshot)));
    let client = arguments.remote.client()?;
    let mut pieces = std::pin::pin!(client.export_snapshot(&arguments.snapshot).await.map_err(asked())?);
    while let Some(piece) = pieces.try_next().await.map_err(asked())? {
        out.write_all(&piece).map_err(CommandError::file("write to", "standard output"))?;
    }
    out.flush().map_err(CommandError::file("write to", "standard output"))
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
