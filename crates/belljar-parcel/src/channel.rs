//! Streams that tasks wait for, as the readers and writers that blocking code wants. A few pieces are on their way at a time.

use std::io::{self, Read, Write};

use belljar_ports::BlobStream;
use bytes::{Buf, Bytes};
use futures_util::{StreamExt, stream};
use tokio::sync::mpsc;

const ON_THEIR_WAY: usize = 4;
const PIECE: usize = 256 << 10;

/// A stream, and what fills it from a thread that may block.
pub(crate) fn outgoing() -> (Outgoing, BlobStream) {
    let (sender, receiver) = mpsc::channel(ON_THEIR_WAY);
    let pieces = stream::unfold(receiver, |mut receiver| async move { receiver.recv().await.map(|piece| (piece, receiver)) });
    (Outgoing { sender, buffer: Vec::with_capacity(PIECE) }, Box::pin(pieces))
}

/// The writing end.
pub(crate) struct Outgoing {
    sender: mpsc::Sender<io::Result<Bytes>>,
    buffer: Vec<u8>,
}

impl Outgoing {
    /// Ends the stream: well, or with an error that its reader sees.
    pub(crate) fn finish(mut self, result: io::Result<()>) {
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
    pub(crate) fn new(mut content: BlobStream) -> Self {
        let (sender, receiver) = mpsc::channel(ON_THEIR_WAY);
        tokio::spawn(async move {
            while let Some(piece) = content.next().await {
                let failed = piece.is_err();
                if sender.send(piece).await.is_err() || failed {
                    break;
                }
            }
        });
        Self { receiver, current: Bytes::new() }
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
