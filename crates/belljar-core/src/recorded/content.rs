//! Bytes that pass, counted and digested. Nothing is kept of them.

use belljar_ports::{ByteStream, OutputStream};
use belljar_types::{AuditAction, ContentDigest, Offsets, OutputEvent, ProcessId, StreamKind, hex};
use bytes::Bytes;
use futures_util::StreamExt;
use sha2::{Digest, Sha256};
use tokio::sync::{mpsc, oneshot};

use super::Witness;

/// Pieces of a file that may wait to be digested.
const AHEAD: usize = 8;

/// A stream's bytes so far. A digest is told only if no byte was missed.
#[derive(Clone)]
pub(super) struct Digested {
    sha256: Sha256,
    next: u64,
    whole: bool,
}

impl Digested {
    fn from(offset: u64) -> Self {
        Self { sha256: Sha256::new(), next: offset, whole: offset == 0 }
    }

    fn take(&mut self, offset: u64, bytes: &[u8]) {
        self.whole &= offset == self.next;
        if self.whole {
            self.sha256.update(bytes);
        }
        self.next = offset + bytes.len() as u64;
    }

    pub(super) fn finish(self) -> ContentDigest {
        ContentDigest { bytes: self.next, sha256: self.whole.then(|| hex(&self.sha256.finalize())) }
    }
}

/// Output that tells the witness how the process ended, before whoever reads it is told.
pub(super) fn watch_output(output: OutputStream, witness: Witness, id: ProcessId, from: Offsets) -> OutputStream {
    let start = (output, Some((Digested::from(from.stdout), Digested::from(from.stderr))));
    Box::pin(futures_util::stream::unfold(start, move |(mut output, mut seen)| {
        let (witness, id) = (witness.clone(), id.clone());
        async move {
            let event = output.next().await?;
            match (&event, &mut seen) {
                (Ok(OutputEvent::Data { stream: StreamKind::Stdout, offset, bytes }), Some((stdout, _))) => stdout.take(*offset, bytes),
                (Ok(OutputEvent::Data { stream: StreamKind::Stderr, offset, bytes }), Some((_, stderr))) => stderr.take(*offset, bytes),
                (Ok(OutputEvent::Exit(exit)), seen) => witness.ended(&id, exit, seen.take()).await,
                _ => {}
            }
            Some((event, (output, seen)))
        }
    }))
}

/// A file that tells the witness when it was read to its end.
pub(super) fn read_to_its_end(bytes: ByteStream, witness: Witness, done: AuditAction) -> ByteStream {
    let start = (bytes, Digester::start());
    Box::pin(futures_util::stream::unfold(start, move |(mut bytes, digester)| {
        let (witness, mut done) = (witness.clone(), done.clone());
        async move {
            let Some(piece) = bytes.next().await else {
                if let AuditAction::File { content, .. } = &mut done {
                    *content = digester.so_far().await;
                }
                witness.note(done).await;
                return None;
            };
            if let Ok(piece) = &piece {
                digester.take(piece).await;
            }
            Some((piece, (bytes, digester)))
        }
    }))
}

/// A file on its way in, and how much of it has gone.
pub(super) fn digest_file(content: ByteStream) -> (ByteStream, Digester) {
    let digester = Digester::start();
    let seen = digester.clone();
    let content = content.then(move |piece| {
        let seen = seen.clone();
        async move {
            if let Ok(piece) = &piece {
                seen.take(piece).await;
            }
            piece
        }
    });
    (Box::pin(content), digester)
}

enum Seen {
    Piece(Bytes),
    Asked(oneshot::Sender<ContentDigest>),
}

/// Digests a file on a task of its own: its bytes go on meanwhile. It ends with the last of those who hold it.
#[derive(Clone)]
pub(super) struct Digester(mpsc::Sender<Seen>);

impl Digester {
    fn start() -> Self {
        let (give, mut take) = mpsc::channel(AHEAD);
        tokio::spawn(async move {
            let mut digested = Digested::from(0);
            while let Some(seen) = take.recv().await {
                match seen {
                    Seen::Piece(bytes) => digested.take(digested.next, &bytes),
                    // Whoever asked may have gone.
                    Seen::Asked(answer) => drop(answer.send(digested.clone().finish())),
                }
            }
        });
        Self(give)
    }

    /// Waits while too many pieces are not digested yet. A task that is gone, with the whole server, is asked for nothing either.
    async fn take(&self, piece: &Bytes) {
        let _gone = self.0.send(Seen::Piece(piece.clone())).await;
    }

    /// What came so far; nothing if the server is stopping.
    pub(super) async fn so_far(&self) -> Option<ContentDigest> {
        let (give, take) = oneshot::channel();
        self.0.send(Seen::Asked(give)).await.ok()?;
        take.await.ok()
    }
}
