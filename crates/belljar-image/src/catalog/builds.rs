//! What builds need of the store, off the threads that must not block: layers of steps, and archives that come and go in pieces.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use belljar_ports::{FileStream, StepKey, TemplateError};
use belljar_types::{FilesHash, LayerDigest, ProjectId};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::listener::printable_chain;
use super::{blocking, storage};
use crate::store::Upload;
use crate::{LayerStore, StoreError};

/// How much of an archive is in memory at a time.
const PIECE: usize = 256 << 10;
/// How long whoever sends an archive may be silent.
pub(super) const SILENCE: Duration = Duration::from_secs(60);

pub(super) async fn keep_step(store: &LayerStore, key: StepKey, written: PathBuf, origin: String) -> Result<LayerDigest, TemplateError> {
    let store = store.clone();
    let kept = blocking("keep the layer of a step", move || store.keep_step(&key, &written, &origin)).await?;
    kept.map_err(|error| storage("keep the layer of a step", error))
}

/// Receives an archive. What was sent is on disk when this returns; an archive that breaks off leaves nothing.
pub(super) async fn put_files(
    store: &LayerStore,
    project: &ProjectId,
    hash: &FilesHash,
    content: FileStream,
    silence: Duration,
) -> Result<(), TemplateError> {
    let (store, project, hash) = (store.clone(), project.clone(), hash.clone());
    let mut receiving = Receiving(None);
    receiving.0 = Some(blocking(OPERATION, move || store.begin_upload(&project, &hash)).await?.map_err(not_received)?);
    if let Err(error) = receiving.fill(content, silence).await {
        let broken_off = receiving.0.take();
        blocking(OPERATION, move || drop(broken_off)).await?;
        return Err(error);
    }
    let whole = receiving.0.take();
    blocking(OPERATION, move || whole.map_or(Ok(()), Upload::finish)).await?.map_err(not_received)
}

const OPERATION: &str = "receive files for a build";

fn not_received(error: StoreError) -> TemplateError {
    tracing::warn!(error = printable_chain(&error), "files for a build were not received");
    TemplateError::Storage { operation: OPERATION, source: Box::new(error) }
}

/// An archive between two of its pieces. It has a thread only while a piece is written: whoever sends may be as slow as they like.
struct Receiving(Option<Upload>);

impl Receiving {
    async fn fill(&mut self, mut content: FileStream, silence: Duration) -> Result<(), TemplateError> {
        let broken = |source: io::Error| TemplateError::Storage { operation: OPERATION, source: Box::new(source) };
        loop {
            let piece = match timeout(silence, next_bytes(&mut content)).await {
                Ok(None) => return Ok(()),
                Ok(Some(piece)) => piece.map_err(broken)?,
                Err(_elapsed) => {
                    let words = format!("nothing came for {} seconds", silence.as_secs_f32());
                    return Err(broken(io::Error::new(io::ErrorKind::TimedOut, words)));
                }
            };
            let Some(mut upload) = self.0.take() else { return Ok(()) };
            let write = move || {
                let written = upload.write(&piece);
                (upload, written)
            };
            let (upload, written) = blocking(OPERATION, write).await?;
            self.0 = Some(upload);
            written.map_err(not_received)?;
        }
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        // Whoever asked has gone. What is removed is on disk.
        if let (Some(upload), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn_blocking(move || drop(upload));
        }
    }
}

/// The next piece with anything in it: empty ones are no sign of life.
async fn next_bytes(content: &mut FileStream) -> Option<io::Result<Bytes>> {
    loop {
        match content.next().await {
            Some(Ok(piece)) if piece.is_empty() => {}
            other => return other,
        }
    }
}

/// Reads an archive as fast as it is taken, and has a thread only while it reads.
pub(super) fn stream_of(file: File) -> FileStream {
    Box::pin(stream::unfold(Some(file), |file| async {
        let mut file = file?;
        let read = move || {
            let mut piece = vec![0; PIECE];
            let length = file.read(&mut piece)?;
            piece.truncate(length);
            Ok((file, Bytes::from(piece)))
        };
        match tokio::task::spawn_blocking(read).await.unwrap_or_else(|stopped| Err(io::Error::other(stopped))) {
            Ok((_, piece)) if piece.is_empty() => None,
            Ok((file, piece)) => Some((Ok(piece), Some(file))),
            Err(error) => Some((Err(error), None)),
        }
    }))
}

#[cfg(test)]
mod tests;
