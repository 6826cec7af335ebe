//! What builds need of the store, off the threads that must not block: layers of steps, and archives that come and go in pieces.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use belljar_ports::{FileStream, StepKey, TemplateError};
use belljar_types::{FilesHash, LayerDigest, ProjectId};
use bytes::Bytes;
use tokio::sync::mpsc;

use super::listener::printable_chain;
use super::{blocking, storage};
use crate::LayerStore;

/// How much of an archive is in memory at a time.
const PIECE: usize = 256 << 10;
const PIECES: usize = 4;

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
    mut content: FileStream,
) -> Result<(), TemplateError> {
    const OPERATION: &str = "receive files for a build";
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| TemplateError::Storage { operation: OPERATION, source };
    let (store, project, hash) = (store.clone(), project.clone(), hash.clone());
    let (send, mut pieces) = mpsc::channel::<Bytes>(PIECES);
    let (whole, is_whole) = tokio::sync::oneshot::channel();
    let writing = tokio::spawn(blocking(OPERATION, move || {
        let mut upload = store.begin_upload(&project, &hash)?;
        while let Some(piece) = pieces.blocking_recv() {
            upload.write(&piece)?;
        }
        if is_whole.blocking_recv().is_ok() { upload.finish() } else { Ok(()) }
    }));
    let mut broken = None;
    while let Some(piece) = std::future::poll_fn(|context| content.as_mut().poll_next(context)).await {
        match piece {
            // A writer that gave up says why below.
            Ok(piece) => {
                if send.send(piece).await.is_err() {
                    break;
                }
            }
            Err(error) => {
                broken = Some(error);
                break;
            }
        }
    }
    drop(send);
    if broken.is_none() {
        let _gave_up = whole.send(());
    } else {
        drop(whole);
    }
    let written = writing.await.map_err(|error| failed(Box::new(error)))??;
    written.map_err(|error| {
        tracing::warn!(error = printable_chain(&error), "files for a build were not received");
        failed(Box::new(error))
    })?;
    broken.map_or(Ok(()), |error| Err(failed(Box::new(error))))
}

/// Reads an archive as fast as it is taken.
pub(super) fn stream_of(mut file: File) -> FileStream {
    let (send, mut pieces) = mpsc::channel(PIECES);
    tokio::task::spawn_blocking(move || {
        loop {
            let mut piece = vec![0; PIECE];
            let read = file.read(&mut piece);
            let item = match read {
                Ok(0) => return,
                Ok(length) => {
                    piece.truncate(length);
                    Ok(Bytes::from(piece))
                }
                Err(error) => Err(error),
            };
            let last = item.is_err();
            if send.blocking_send(item).is_err() || last {
                return;
            }
        }
    });
    Box::pin(futures_util::stream::poll_fn(move |context| pieces.poll_recv(context)))
}
