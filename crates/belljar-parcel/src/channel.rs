//! Streams that tasks wait for, as the readers and writers that blocking code wants. A few pieces are on their way at a time.
//!
//! ```text
//!   whoever sends ─▶ a task that waits for them, but not for ever ─▶ Incoming, on a thread that may block
//!   Outgoing, on a thread that may block ─▶ a task that waits for them, but not for ever ─▶ whoever takes
//! ```
//! Such a thread waits for whoever is at the other end, and the server has so many of them and no more, for everything. So only a few snapshots come in
//! and go out at once: the next waits for its turn before it has a thread. And an end that is silent too long is given up.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use belljar_ports::{BlobStream, ParcelError};
use bytes::{Buf, Bytes};
use futures_util::{StreamExt, stream};
use tokio::sync::mpsc::error::SendTimeoutError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use crate::unpacking::blocking;

const ON_THEIR_WAY: usize = 4;
const PIECE: usize = 256 << 10;

/// How many come in at once, and how many go out. Turns of their own, because what goes out may be what comes in again.
const AT_ONCE: usize = 16;
/// How long an end may be silent: twice as long as a bucket may, before it is asked again.
const SILENCE: Duration = Duration::from_secs(120);

/// The way in and out.
pub(crate) struct Passage {
    inward: Arc<Semaphore>,
    outward: Arc<Semaphore>,
    silence: Duration,
}

impl Default for Passage {
    fn default() -> Self {
        Self::new(AT_ONCE, SILENCE)
    }
}

impl Passage {
    fn new(at_once: usize, silence: Duration) -> Self {
        Self { inward: Arc::new(Semaphore::new(at_once)), outward: Arc::new(Semaphore::new(at_once)), silence }
    }

    /// Follows a stream, to be read by [`Self::take_in`].
    pub(crate) fn follow(&self, content: BlobStream) -> Incoming {
        Incoming::new(content, self.silence)
    }

    /// Reads what comes in, on a thread that may block, when it is its turn.
    pub(crate) async fn take_in<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ParcelError> + Send + 'static,
    ) -> Result<T, ParcelError> {
        let turn = turn(&self.inward).await;
        blocking(move || {
            let _until_done = turn;
            work()
        })
        .await
    }

    /// A stream of what is written, on a thread that may block, when it is its turn. If that fails the stream ends with the error.
    pub(crate) async fn send_out(&self, work: impl FnOnce(&mut Outgoing) -> io::Result<()> + Send + 'static) -> BlobStream {
        let turn = turn(&self.outward).await;
        let (mut out, stream) = outgoing(self.silence);
        tokio::task::spawn_blocking(move || {
            let _until_done = turn;
            let result = work(&mut out);
            out.finish(result);
        });
        stream
    }
}

/// Never closed, so there is always one in the end.
async fn turn(turns: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    Arc::clone(turns).acquire_owned().await.ok()
}

/// A stream, and what fills it from a thread that may block.
fn outgoing(silence: Duration) -> (Outgoing, BlobStream) {
    let (sender, mut written) = mpsc::channel(1);
    let (to_reader, pieces) = mpsc::channel(ON_THEIR_WAY);
    // Apart from the pieces: where a reader takes none, there is no room for an error behind them.
    let (fail, failed) = oneshot::channel();
    tokio::spawn(async move {
        while let Some(piece) = written.recv().await {
            let failure = match piece {
                Ok(piece) => match to_reader.send_timeout(piece, silence).await {
                    Ok(()) => continue,
                    Err(SendTimeoutError::Closed(_)) => return,
                    Err(SendTimeoutError::Timeout(_)) => silent("nothing was taken", silence),
                },
                Err(error) => error,
            };
            // A reader that has left hears nothing.
            let _told = fail.send(failure);
            return;
        }
    });
    let stream = stream::unfold((pieces, Some(failed)), |(mut pieces, mut failed)| async move {
        match pieces.recv().await {
            Some(piece) => Some((Ok(piece), (pieces, failed))),
            None => failed.take()?.await.ok().map(|error| (Err(error), (pieces, None))),
        }
    });
    (Outgoing { sender, buffer: Vec::with_capacity(PIECE) }, Box::pin(stream))
}

fn silent(what: &str, silence: Duration) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("{what} for {} seconds", silence.as_secs_f32()))
}

/// The writing end.
pub(crate) struct Outgoing {
    sender: mpsc::Sender<io::Result<Bytes>>,
    buffer: Vec<u8>,
}

impl Outgoing {
    /// Ends the stream: well, or with an error that its reader sees.
    fn finish(mut self, result: io::Result<()>) {
        let ended = result.and_then(|()| self.flush());
        if let Err(error) = ended {
            // A reader that has left hears nothing.
            let _told = self.sender.blocking_send(Err(error));
        }
    }
}

impl Write for Outgoing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.buffer, Vec::with_capacity(PIECE));
        self.sender.blocking_send(Ok(piece.into())).map_err(|_left| io::ErrorKind::BrokenPipe.into())
    }
}

/// The reading end of a stream, for a thread that may block.
pub(crate) struct Incoming {
    receiver: mpsc::Receiver<io::Result<Bytes>>,
    current: Bytes,
}

impl Incoming {
    /// Follows the stream in a task of its own, for as long as it is read.
    fn new(mut content: BlobStream, silence: Duration) -> Self {
        let (sender, receiver) = mpsc::channel(ON_THEIR_WAY);
        tokio::spawn(async move {
            loop {
                // Only the sender is waited for with impatience: a reader may be waiting for its turn.
                let piece = match timeout(silence, next_bytes(&mut content)).await {
                    Ok(None) => return,
                    Ok(Some(piece)) => piece,
                    Err(_elapsed) => Err(silent("nothing came", silence)),
                };
                let failed = piece.is_err();
                if sender.send(piece).await.is_err() || failed {
                    return;
                }
            }
        });
        Self { receiver, current: Bytes::new() }
    }
}

/// The next piece with anything in it: empty ones are no sign of life.
async fn next_bytes(content: &mut BlobStream) -> Option<io::Result<Bytes>> {
    loop {
        match content.next().await {
            Some(Ok(piece)) if piece.is_empty() => {}
            other => return other,
        }
    }
}

impl Read for Incoming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.receiver.blocking_recv() {
                Some(piece) => self.current = piece?,
                None => return Ok(0),
            }
        }
        let taken = buffer.len().min(self.current.len());
        buffer[..taken].copy_from_slice(&self.current[..taken]);
        self.current.advance(taken);
        Ok(taken)
    }
}

#[cfg(test)]
mod tests;
