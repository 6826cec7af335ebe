//! Streams that come down: a task reads them and checks every frame, so that heartbeats go on however slow the reader is.
//!
//! The task holds a few pieces and the one that is being checked; then the agent waits, by TCP's own means. It ends when its reader goes.

use std::pin::Pin;
use std::time::Duration;

use belljar_guest_line::Driven;
use belljar_guest_protocol::wire::{Ack, ExitBody, Notice, OutputHeader, stream_from_number};
use belljar_guest_protocol::{Frame, FrameKind, decode, encode};
use belljar_ports::GuestError;
use belljar_types::{Invalid, Offsets, OutputEvent, StreamKind};
use bytes::{Buf, Bytes};
use futures_core::Stream;
use futures_util::StreamExt;
use tokio::sync::mpsc;

use crate::error::{bad_value, misbehaved, too_slow};
use crate::exchange::Exchange;

type Boxed<T> = Pin<Box<dyn Stream<Item = Result<T, GuestError>> + Send>>;

/// What a frame meant.
pub(crate) enum Step<T> {
    /// Something for the reader.
    Give(T),
    /// Several things for the reader, in order.
    GiveAll(Vec<T>),
    /// The stream is over.
    Over,
}

/// Understands the frames of one stream.
pub(crate) trait Reader: Send + 'static {
    /// What the reader gets.
    type Item: Send + 'static;

    /// How many items may wait for the reader.
    const AHEAD: usize = 4;

    /// Checks and translates a frame.
    fn take(&mut self, exchange: &Exchange, frame: Frame) -> Result<Step<Self::Item>, GuestError>;

    /// How long the agent may take for the next frame while the reader waits for it.
    const LONGEST_PAUSE: Duration = Duration::MAX;

    /// What to tell the agent once the reader has got everything up to here. Needs an `AHEAD` of 1.
    fn position(&self) -> Option<Ack> {
        None
    }
}

/// Runs a stream on a task of its own.
pub(crate) fn run<R: Reader>(exchange: Exchange, reader: R) -> Boxed<R::Item> {
    let (give, take) = mpsc::channel(R::AHEAD);
    tokio::spawn(async move {
        if let Err(error) = follow(exchange, reader, &give).await {
            // Nobody may be left to tell.
            let _ = give.send(Err(error)).await;
        }
    });
    // Fused: whoever asks once more after the end is told again, instead of falling over it.
    Box::pin(futures_util::stream::unfold(take, |mut take| async move { take.recv().await.map(|item| (item, take)) }).fuse())
}

async fn follow<R: Reader>(
    mut exchange: Exchange,
    mut reader: R,
    give: &mpsc::Sender<Result<R::Item, GuestError>>,
) -> Result<(), GuestError> {
    // Given but perhaps not taken: an agent that forgot it on our word could not give it again if the reader went now.
    let mut given: Option<Ack> = None;
    loop {
        let waiting = given.is_some();
        let taken_or_gone = async {
            if waiting {
                return give.reserve().await.is_ok();
            }
            give.closed().await;
            false
        };
        let driven = tokio::time::timeout(R::LONGEST_PAUSE, exchange.drive(taken_or_gone)).await;
        let frame = match driven.unwrap_or_else(|_| Err(too_slow(exchange.verb)))? {
            Driven::Frame(frame) => frame,
            Driven::Done(false) => return Ok(()),
            Driven::Done(true) => {
                acknowledge(&mut exchange, given.take(), give).await?;
                continue;
            }
        };
        let items = match reader.take(&exchange, frame)? {
            Step::Give(item) => vec![item],
            Step::GiveAll(items) => items,
            Step::Over => {
                exchange.finish();
                return Ok(());
            }
        };
        for item in items {
            let Ok(place) = exchange.hold(give.reserve()).await? else { return Ok(()) };
            place.send(Ok(item));
        }
        // There was place, so what was given before has been taken.
        acknowledge(&mut exchange, given.take(), give).await?;
        given = reader.position();
    }
}

/// An agent that does not take it may stop its reader, but not keep this task when the reader has gone.
async fn acknowledge<T>(exchange: &mut Exchange, position: Option<Ack>, give: &mpsc::Sender<T>) -> Result<(), GuestError> {
    let Some(ack) = position else { return Ok(()) };
    tokio::select! {
        sent = exchange.send(FrameKind::Ack, encode(&ack).into()) => sent,
        () = give.closed() => Ok(()),
    }
}

/// A process's output: contiguous, or explained by a gap.
pub(crate) struct OutputReader {
    next: Offsets,
    exited: bool,
}

impl OutputReader {
    pub(crate) fn new(from: Offsets) -> Self {
        Self { next: from, exited: false }
    }

    fn expect(&mut self, exchange: &Exchange, stream: StreamKind, from: u64, length: u64) -> Result<(), GuestError> {
        let next = match stream {
            StreamKind::Stdout => &mut self.next.stdout,
            StreamKind::Stderr => &mut self.next.stderr,
        };
        if from != *next || length == 0 {
            let detail = format!("output of {length} bytes at offset {from} where offset {next} was due");
            return Err(misbehaved(exchange.verb, detail));
        }
        *next = from.checked_add(length).ok_or_else(|| misbehaved(exchange.verb, "an offset beyond all bounds"))?;
        Ok(())
    }
}

impl Reader for OutputReader {
    type Item = OutputEvent;
    const AHEAD: usize = 1;

    fn take(&mut self, exchange: &Exchange, frame: Frame) -> Result<Step<OutputEvent>, GuestError> {
        let verb = exchange.verb;
        match frame.kind {
            FrameKind::End if self.exited => Ok(Step::Over),
            _ if self.exited => Err(exchange.out_of_turn(&frame)),
            FrameKind::Output => {
                let OutputHeader { stream, offset } = OutputHeader::from_bytes(&frame.body).map_err(|invalid| bad_value(verb, &invalid))?;
                let mut bytes = frame.body;
                bytes.advance(OutputHeader::LENGTH);
                self.expect(exchange, stream, offset, bytes.len() as u64)?;
                Ok(Step::Give(OutputEvent::Data { stream, offset, bytes }))
            }
            FrameKind::Notice => match decode(&frame.body).map_err(|_| misbehaved(verb, "a malformed notice"))? {
                Notice::Gap { stream, from, to } => {
                    let stream = stream_from_number(stream).map_err(|invalid| bad_value(verb, &invalid))?;
                    self.expect(exchange, stream, from, to.saturating_sub(from))?;
                    Ok(Step::Give(OutputEvent::Gap { stream, from, to }))
                }
                Notice::Exit(exit) => {
                    self.exited = true;
                    Ok(Step::Give(OutputEvent::Exit(exit_status(exchange, exit)?)))
                }
            },
            _ => Err(exchange.out_of_turn(&frame)),
        }
    }

    fn position(&self) -> Option<Ack> {
        (!self.exited).then_some(Ack { stdout: self.next.stdout, stderr: self.next.stderr })
    }
}

fn exit_status(exchange: &Exchange, exit: ExitBody) -> Result<belljar_types::ExitStatus, GuestError> {
    exit.try_into().map_err(|invalid: Invalid| bad_value(exchange.verb, &invalid))
}

/// A file's bytes, never more than were asked for.
pub(crate) struct ContentReader {
    /// How many may still come.
    pub(crate) left: u64,
}

impl Reader for ContentReader {
    type Item = Bytes;
    const LONGEST_PAUSE: Duration = Duration::from_secs(600);

    fn take(&mut self, exchange: &Exchange, frame: Frame) -> Result<Step<Bytes>, GuestError> {
        match frame.kind {
            FrameKind::End => Ok(Step::Over),
            FrameKind::Data if frame.body.is_empty() => Err(misbehaved(exchange.verb, "an empty piece of content")),
            FrameKind::Data => {
                let length = frame.body.len() as u64;
                self.left = self.left.checked_sub(length).ok_or_else(|| misbehaved(exchange.verb, "more content than was asked for"))?;
                Ok(Step::Give(frame.body))
            }
            _ => Err(exchange.out_of_turn(&frame)),
        }
    }
}

/// Items, never more than were asked for.
pub(crate) struct ItemReader<B, T> {
    left: u64,
    kinds: std::marker::PhantomData<fn(B) -> T>,
}

impl<B, T> ItemReader<B, T> {
    pub(crate) fn new(most: u64) -> Self {
        Self { left: most, kinds: std::marker::PhantomData }
    }
}

impl<B, T> Reader for ItemReader<B, T>
where
    B: for<'b> minicbor::Decode<'b, ()> + 'static,
    T: TryFrom<B, Error = Invalid> + Send + 'static,
{
    type Item = T;

    fn take(&mut self, exchange: &Exchange, frame: Frame) -> Result<Step<T>, GuestError> {
        let verb = exchange.verb;
        match frame.kind {
            FrameKind::End => Ok(Step::Over),
            FrameKind::Items => {
                let bodies: Vec<B> = decode(&frame.body).map_err(|_| misbehaved(verb, "a malformed list"))?;
                if bodies.is_empty() {
                    return Err(misbehaved(verb, "an empty piece of a list"));
                }
                let count = bodies.len() as u64;
                self.left = self.left.checked_sub(count).ok_or_else(|| misbehaved(verb, "more items than were asked for"))?;
                let items: Result<Vec<T>, Invalid> = bodies.into_iter().map(T::try_from).collect();
                items.map(Step::GiveAll).map_err(|invalid| bad_value(verb, &invalid))
            }
            _ => Err(exchange.out_of_turn(&frame)),
        }
    }
}
