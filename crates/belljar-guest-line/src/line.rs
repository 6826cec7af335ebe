//! The line itself.
//!
//! Reading and writing happen in one task. A side that only wrote would not hear that the other is still there, and two sides that only wrote
//! would wait for each other for ever.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::IoSlice;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use belljar_guest_protocol::{Decoder, FRAME_HEADER, Frame, FrameError, FrameKind, HEARTBEAT_EVERY, SILENCE_LIMIT, frame_header};
use bytes::{Buf, BufMut, Bytes};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, Sleep, sleep_until};

const READ_AT_ONCE: usize = (256 << 10) + FRAME_HEADER;
/// Pieces in one write.
const WRITE_AT_ONCE: usize = 16;
/// Room that an idle connection holds too.
const READ_AT_LEAST: usize = 4 << 10;

/// How long silence is borne in an open call.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// This side says something at least this often.
    pub heartbeat_every: Duration,
    /// The other side is given up after this long without a whole frame.
    pub silence_limit: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { heartbeat_every: HEARTBEAT_EVERY, silence_limit: SILENCE_LIMIT }
    }
}

/// Why a line cannot be used any more.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// The other side hung up.
    #[error("the other side hung up")]
    Closed,
    /// The other side said nothing for too long.
    #[error("the other side was silent for too long")]
    Silent,
    /// Reading or writing failed.
    #[error("read or write the connection")]
    Io(#[source] std::io::Error),
    /// What came is no frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// What came first.
#[derive(Debug)]
pub enum Driven<T> {
    /// The thing that was waited for.
    Done(T),
    /// A frame from the other side.
    Frame(Frame),
}

/// What came first while frames were under way both ways.
#[derive(Debug)]
pub enum Carried<T> {
    /// The thing that was waited for.
    Done(T),
    /// A frame from the other side.
    Frame(Frame),
    /// All that was put is on its way.
    Sent,
}

/// A connection that carries frames.
pub struct Line<S> {
    io: S,
    decoder: Decoder,
    outgoing: VecDeque<Bytes>,
    next: Option<Frame>,
    call: u16,
    in_call: bool,
    hung_up: bool,
    heard: Instant,
    said: Instant,
    alarm: Pin<Box<Sleep>>,
    patience: Patience,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Line<S> {
    /// A line over `io` that takes bodies of up to `limit` bytes.
    pub fn new(io: S, limit: u32, patience: Patience) -> Self {
        let now = Instant::now();
        Self {
            io,
            decoder: Decoder::new(limit),
            outgoing: VecDeque::new(),
            next: None,
            call: 0,
            in_call: false,
            hung_up: false,
            heard: now,
            said: now,
            alarm: Box::pin(sleep_until(now)),
            patience,
        }
    }

    /// From now on takes bodies of up to `limit` bytes.
    pub fn set_limit(&mut self, limit: u32) {
        self.decoder.set_limit(limit);
    }

    /// The number of the current or last call.
    pub fn call(&self) -> u16 {
        self.call
    }

    /// Opens a call: frames carry its number, silence counts.
    pub fn begin(&mut self, call: u16) {
        let now = Instant::now();
        (self.call, self.in_call, self.heard, self.said) = (call, true, now, now);
    }

    /// Closes the call: both sides may be silent.
    pub fn finish(&mut self) {
        self.in_call = false;
    }

    /// Lets both sides be silent in the call that is open. Only an end of the connection is then noticed.
    pub fn bear_silence(&mut self) {
        self.in_call = false;
    }

    /// Whether nothing came that nobody asked for; an idle connection on which something did is not used again.
    pub fn is_quiet(&mut self) -> bool {
        let quiet = poll_once(|cx| self.poll_frame(cx)).is_pending();
        quiet && self.decoder.is_empty() && self.next.is_none() && !self.hung_up
    }

    /// Sends a frame and returns when all of it is on its way.
    pub async fn send(&mut self, kind: FrameKind, body: Bytes) -> Result<(), LineError> {
        self.queue(kind, [body]);
        self.flush().await
    }

    /// Sends a frame whose body is in two pieces.
    pub async fn send_pair(&mut self, kind: FrameKind, head: Bytes, tail: Bytes) -> Result<(), LineError> {
        self.queue(kind, [head, tail]);
        self.flush().await
    }

    /// The next frame that is not a heartbeat.
    pub async fn receive(&mut self) -> Result<Frame, LineError> {
        match self.drive(std::future::pending::<()>()).await? {
            Driven::Frame(frame) => Ok(frame),
            Driven::Done(()) => Err(LineError::Closed),
        }
    }

    /// A frame that is here already.
    pub fn received(&mut self) -> Result<Option<Frame>, LineError> {
        match poll_once(|cx| self.poll_frame(cx)) {
            Poll::Ready(Err(error)) => Err(error),
            _ => Ok(self.next.take()),
        }
    }

    /// Waits for `work` or a frame, whichever comes first. Dropping the returned future loses no frame; `work` can be given again.
    pub async fn drive<F: Future>(&mut self, work: F) -> Result<Driven<F::Output>, LineError> {
        let mut work = pin!(work);
        poll_fn(|cx| {
            // What the other side said goes first: it may be the reason to stop working.
            if let Poll::Ready(result) = self.poll_frame(cx) {
                return Poll::Ready(result.map(|()| Driven::Frame(self.next.take().expect("a frame is ready"))));
            }
            work.as_mut().poll(cx).map(|output| Ok(Driven::Done(output)))
        })
        .await
    }

    /// Waits for `work` and leaves frames where they are: at most one is read ahead, then the other side has to wait.
    pub async fn hold<F: Future>(&mut self, work: F) -> Result<F::Output, LineError> {
        let mut work = pin!(work);
        poll_fn(|cx| {
            if let Poll::Ready(output) = work.as_mut().poll(cx) {
                return Poll::Ready(Ok(output));
            }
            match self.poll_frame(cx) {
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                Poll::Ready(Ok(())) => self.poll_peace(cx),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// Tells the other side that nothing more comes, then takes what it still sends, for at most `limit`: a hang-up with bytes unread would
    /// destroy what was sent last.
    pub async fn hang_up(mut self, limit: Duration) {
        let goodbye = async {
            let _ = self.flush().await;
            let _ = self.io.shutdown().await;
            let mut sink = [0u8; 4096];
            while matches!(self.io.read(&mut sink).await, Ok(1..)) {}
        };
        let _ = tokio::time::timeout(limit, goodbye).await;
    }

    /// Hands over a frame that goes out during whatever is waited for next.
    pub fn put(&mut self, kind: FrameKind, body: Bytes) {
        self.queue(kind, [body]);
    }

    /// Whether some of what was handed over is still here.
    pub fn is_sending(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Waits for `work`, for a frame if it `takes` one now, or until all that was put is on its way. Neither direction waits for the other.
    pub async fn carry<F: Future>(&mut self, takes: bool, work: F) -> Result<Carried<F::Output>, LineError> {
        let sending = self.is_sending();
        let mut work = pin!(work);
        poll_fn(|cx| {
            // What is held back has its place before the end of the line is told.
            if !takes && let Poll::Ready(output) = work.as_mut().poll(cx) {
                return Poll::Ready(Ok(Carried::Done(output)));
            }
            let moved = self.poll_frame(cx)?;
            if takes && let Some(frame) = self.next.take() {
                return Poll::Ready(Ok(Carried::Frame(frame)));
            }
            if sending && !self.is_sending() {
                return Poll::Ready(Ok(Carried::Sent));
            }
            if takes {
                return work.as_mut().poll(cx).map(|output| Ok(Carried::Done(output)));
            }
            if moved.is_ready() { self.poll_peace(cx) } else { Poll::Pending }
        })
        .await
    }

    fn queue<const N: usize>(&mut self, kind: FrameKind, body: [Bytes; N]) {
        let length = body.iter().map(Bytes::len).sum::<usize>();
        let length = u32::try_from(length).expect("bodies are kept below MAX_REQUEST");
        self.outgoing.push_back(Bytes::copy_from_slice(&frame_header(kind, self.call, length)));
        self.outgoing.extend(body.into_iter().filter(|piece| !piece.is_empty()));
    }

    async fn flush(&mut self) -> Result<(), LineError> {
        poll_fn(|cx| {
            if let Poll::Ready(Err(error)) = self.poll_frame(cx) {
                return Poll::Ready(Err(error));
            }
            if self.outgoing.is_empty() { Poll::Ready(Ok(())) } else { self.poll_peace(cx) }
        })
        .await
    }

    /// Moves bytes both ways until a frame is ready in `next`.
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LineError>> {
        self.poll_write(cx)?;
        while self.next.is_none() {
            match self.decoder.next_frame()? {
                Some(frame) => {
                    // Only whole frames count: bytes that drip in one by one would keep a call open for ever.
                    self.heard = Instant::now();
                    self.next = (frame.kind != FrameKind::Heartbeat).then_some(frame);
                }
                None if self.hung_up => return Poll::Ready(Err(LineError::Closed)),
                None => {
                    if self.poll_read(cx)?.is_pending() {
                        return self.poll_peace(cx);
                    }
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LineError>> {
        let room = self.decoder.wanted().min(READ_AT_ONCE);
        // The rest of a frame is read to where it stays, and the next header with it, so that the frame after it is read in one go; a header
        // alone must not make more room than one read fills.
        let room_now = (self.decoder.lacking() + FRAME_HEADER).max(READ_AT_LEAST).min(room);
        let buffer = self.decoder.buffer();
        // Room that is left is used up first: a buffer that grows is copied whole, with all the room that nothing came for.
        if buffer.capacity() - buffer.len() < room_now.min(READ_AT_LEAST) {
            buffer.reserve(room_now);
        }
        let mut buffer = buffer.limit(room);
        match pin!(self.io.read_buf(&mut buffer)).poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(LineError::Io(error))),
            Poll::Ready(Ok(count)) => {
                self.hung_up = count == 0;
                Poll::Ready(Ok(()))
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Result<(), LineError> {
        while !self.outgoing.is_empty() {
            let empty = IoSlice::new(&[]);
            let mut slices = [empty; WRITE_AT_ONCE];
            for (slice, piece) in slices.iter_mut().zip(&self.outgoing) {
                *slice = IoSlice::new(piece);
            }
            match Pin::new(&mut self.io).poll_write_vectored(cx, &slices) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Err(error)) => return Err(LineError::Io(error)),
                Poll::Ready(Ok(0)) => return Err(LineError::Closed),
                Poll::Ready(Ok(count)) => self.wrote(count),
            }
        }
        match pin!(self.io.flush()).poll(cx) {
            Poll::Ready(Err(error)) => Err(LineError::Io(error)),
            _ => Ok(()),
        }
    }

    fn wrote(&mut self, mut count: usize) {
        self.said = Instant::now();
        while let Some(piece) = self.outgoing.front_mut() {
            if piece.len() > count {
                piece.advance(count);
                return;
            }
            count -= piece.len();
            self.outgoing.pop_front();
        }
    }

    /// Sends a heartbeat if it is time for one, and gives up if the other side has been silent for too long. Ready only with an error.
    fn poll_peace<T>(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, LineError>> {
        while self.in_call {
            let now = Instant::now();
            if self.next.is_some() {
                // Not reading is this side's own choice, so the other side's silence means nothing.
                self.heard = now;
            }
            let give_up = self.heard + self.patience.silence_limit;
            if now >= give_up {
                return Poll::Ready(Err(LineError::Silent));
            }
            let mut wake = give_up;
            if self.outgoing.is_empty() {
                let speak = self.said + self.patience.heartbeat_every;
                if now >= speak {
                    self.queue(FrameKind::Heartbeat, [Bytes::new()]);
                    self.poll_write(cx)?;
                    continue;
                }
                wake = wake.min(speak);
            }
            self.alarm.as_mut().reset(wake);
            if self.alarm.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
        Poll::Pending
    }
}

fn poll_once<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
    poll(&mut Context::from_waker(std::task::Waker::noop()))
}

#[cfg(test)]
#[path = "line/tests.rs"]
mod tests;
