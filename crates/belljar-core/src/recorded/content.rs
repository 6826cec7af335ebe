//! Bytes that pass, counted and digested. Nothing is kept of them.

use std::sync::{Arc, Mutex, PoisonError};

use belljar_ports::{ByteStream, OutputStream};
use belljar_types::{AuditAction, ContentDigest, Offsets, OutputEvent, ProcessId, StreamKind, hex};
use futures_util::StreamExt;
use sha2::{Digest, Sha256};

use super::Witness;

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
    let start = (bytes, Digested::from(0));
    Box::pin(futures_util::stream::unfold(start, move |(mut bytes, mut seen)| {
        let (witness, mut done) = (witness.clone(), done.clone());
        async move {
            let Some(piece) = bytes.next().await else {
                if let AuditAction::File { content, .. } = &mut done {
                    *content = Some(seen.finish());
                }
                witness.note(done).await;
                return None;
            };
            if let Ok(piece) = &piece {
                seen.take(seen.next, piece);
            }
            Some((piece, (bytes, seen)))
        }
    }))
}

/// What was sent of a file.
pub(super) struct Sent(Arc<Mutex<Digested>>);

impl Sent {
    pub(super) fn so_far(&self) -> ContentDigest {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone().finish()
    }
}

/// A file on its way in, and how much of it has gone.
pub(super) fn digest_file(content: ByteStream) -> (ByteStream, Sent) {
    let seen = Arc::new(Mutex::new(Digested::from(0)));
    let counter = Arc::clone(&seen);
    let content = content.inspect(move |piece| {
        if let Ok(piece) = piece {
            let mut seen = counter.lock().unwrap_or_else(PoisonError::into_inner);
            let next = seen.next;
            seen.take(next, piece);
        }
    });
    (Box::pin(content), Sent(seen))
}
