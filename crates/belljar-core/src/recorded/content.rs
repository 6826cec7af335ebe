//! Bytes that pass, counted and digested. Nothing is kept of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use belljar_ports::{ByteStream, GuestError, OutputStream};
use belljar_types::{AuditAction, ContentDigest, GuestPath, Offsets, OutputEvent, Phase, ProcessId, StreamKind, hex};
use bytes::Bytes;
use futures_util::StreamExt;
use sha2::{Digest, Sha256};
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::{Witness, file};

/// Pieces of a file on their way to be digested.
const AHEAD: usize = 8;
/// How much of a file may wait to be digested until it is at its end, and how much of all files together. What is more is digested at once.
const LATER: usize = 8 << 20;
const ALL_LATER: usize = 64 << 20;
static ROOM: Semaphore = Semaphore::const_new(ALL_LATER);
/// How long it is left alone then: whoever was answered often asks for something else at once, and would share the processor with it.
const PAUSE: Duration = Duration::from_millis(20);
/// Digesting this much takes no longer than anything else.
const SMALL: usize = 64 << 10;

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

/// A file that tells the witness how much of it was read, when nobody reads on.
pub(super) fn watch_reading(bytes: ByteStream, reading: Reading) -> ByteStream {
    Box::pin(futures_util::stream::unfold((bytes, reading), |(mut bytes, mut reading)| async move {
        match bytes.next().await {
            Some(piece) => {
                reading.see(&piece).await;
                Some((piece, (bytes, reading)))
            }
            None => {
                reading.end().await;
                None
            }
        }
    }))
}

/// A file that is being read. Whoever knows how long it is, as whoever answers over HTTP does, lets go of it after its last byte without asking
/// whether there are more; so what was read is told when it is dropped, if not before.
pub(super) struct Reading {
    digester: Digester,
    witness: Witness,
    path: GuestPath,
    /// How many bytes there are to read.
    length: u64,
    failed: bool,
    told: bool,
}

impl Reading {
    pub(super) fn new(witness: Witness, path: &GuestPath, length: u64) -> Self {
        Self { digester: Digester::start(), witness, path: path.clone(), length, failed: false, told: false }
    }

    async fn see(&mut self, piece: &Result<Bytes, GuestError>) {
        match piece {
            Ok(piece) => self.digester.take(piece).await,
            Err(_) => self.failed = true,
        }
    }

    /// What became of it; `at_its_end` if there was nothing more.
    fn outcome(&self, at_its_end: bool) -> AuditAction {
        let whole = at_its_end || self.digester.bytes.load(Ordering::Relaxed) as u64 >= self.length;
        file("read", if whole && !self.failed { Phase::Done } else { Phase::Failed }, &self.path)
    }

    async fn end(&mut self) {
        self.told = true;
        self.digester.clone().tell(&self.witness, self.outcome(true)).await;
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        if self.told {
            return;
        }
        let (digester, witness, outcome) = (self.digester.clone(), self.witness.clone(), self.outcome(false));
        self.witness.later(async move { digester.tell(&witness, outcome).await });
    }
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

/// Digests a file behind its back: whoever waits for the file does not wait for its digest. It ends with the last of those who hold it.
#[derive(Clone)]
pub(super) struct Digester {
    give: mpsc::Sender<Seen>,
    bytes: Arc<AtomicUsize>,
}

impl Digester {
    fn start() -> Self {
        let (give, take) = mpsc::channel(AHEAD);
        tokio::spawn(digest(take));
        Self { give, bytes: Arc::default() }
    }

    /// Waits while too much is not digested yet. A task that is gone, with the whole server, is asked for nothing either.
    async fn take(&self, piece: &Bytes) {
        self.bytes.fetch_add(piece.len(), Ordering::Relaxed);
        let _gone = self.give.send(Seen::Piece(piece.clone())).await;
    }

    /// Tells the witness what became of a file and what was in it: at once if it was small, else when it is digested.
    pub(super) async fn tell(self, witness: &Witness, mut done: AuditAction) {
        let (small, teller) = (self.bytes.load(Ordering::Relaxed) <= SMALL, witness.clone());
        let tell = async move {
            if let AuditAction::File { content, .. } = &mut done {
                *content = self.so_far().await;
            }
            teller.note(done).await;
        };
        if small {
            return tell.await;
        }
        witness.later(async {
            tokio::time::sleep(PAUSE).await;
            tell.await;
        });
    }

    /// What came so far; nothing if the server is stopping.
    async fn so_far(&self) -> Option<ContentDigest> {
        let (give, take) = oneshot::channel();
        self.give.send(Seen::Asked(give)).await.ok()?;
        take.await.ok()
    }
}

async fn digest(mut take: mpsc::Receiver<Seen>) {
    let (mut digested, mut waiting, mut bytes) = (Digested::from(0), Vec::new(), 0);
    while let Some(seen) = take.recv().await {
        let asked = match seen {
            Seen::Asked(answer) => Some(answer),
            Seen::Piece(piece) => {
                let room = u32::try_from(piece.len()).ok().and_then(|length| ROOM.try_acquire_many(length).ok());
                bytes += piece.len();
                let may_wait = room.is_some() && bytes < LATER;
                waiting.push((piece, room));
                if may_wait {
                    continue;
                }
                None
            }
        };
        let work = move || {
            waiting.drain(..).for_each(|(piece, _room)| digested.take(digested.next, &piece));
            (digested, waiting)
        };
        // What takes long would hold up others who are served by the same thread.
        let done = if bytes <= SMALL { Ok(work()) } else { tokio::task::spawn_blocking(work).await };
        let Ok(done) = done else { return };
        (digested, waiting) = done;
        bytes = 0;
        if let Some(answer) = asked {
            // Whoever asked may have gone.
            let _gone = answer.send(digested.clone().finish());
        }
    }
}
