//! A connection to a program inside. A task keeps it alive while its user does nothing, and neither direction waits for the other: a program may say much
//! before it listens again.

use async_trait::async_trait;
use belljar_guest_line::Carried;
use belljar_guest_protocol::{FrameKind, Verb};
use belljar_ports::{GuestConnection, GuestError, GuestReader, GuestWriter};
use bytes::Bytes;
use tokio::sync::mpsc;

use crate::error::misbehaved;
use crate::exchange::Exchange;

const AHEAD: usize = 2;
const PIECE: usize = 128 << 10;

enum Up {
    Bytes(Bytes),
    Finish,
}

/// The user's end, one way.
struct FromProgram {
    down: mpsc::Receiver<Result<Bytes, GuestError>>,
}

/// The other way.
struct ToProgram {
    up: mpsc::Sender<Up>,
}

/// Carries bytes both ways over an exchange until both have ended, or their user has gone.
pub(crate) fn open(exchange: Exchange) -> GuestConnection {
    let (give, down) = mpsc::channel(AHEAD);
    let (up, take) = mpsc::channel(AHEAD);
    tokio::spawn(async move {
        if let Err(error) = carry(exchange, &give, take).await {
            // The user may have gone.
            let _ = give.send(Err(error)).await;
        }
    });
    GuestConnection::new(FromProgram { down }, ToProgram { up })
}

#[async_trait]
impl GuestReader for FromProgram {
    async fn read(&mut self) -> Result<Option<Bytes>, GuestError> {
        // An empty piece stands for the program's end while the user may still write.
        Ok(self.down.recv().await.transpose()?.filter(|bytes| !bytes.is_empty()))
    }
}

impl ToProgram {
    async fn send(&self, up: Up) -> Result<(), GuestError> {
        self.up.send(up).await.map_err(|_| gone())
    }
}

#[async_trait]
impl GuestWriter for ToProgram {
    async fn write(&mut self, bytes: Bytes) -> Result<(), GuestError> {
        self.send(Up::Bytes(bytes)).await
    }

    async fn finish(&mut self) -> Result<(), GuestError> {
        self.send(Up::Finish).await
    }
}

fn gone() -> GuestError {
    GuestError::Lost { operation: Verb::Connect.words(), source: std::io::ErrorKind::BrokenPipe.into() }
}

enum Local<'a> {
    Place(mpsc::Permit<'a, Result<Bytes, GuestError>>),
    Up(Up),
    Gone,
}

async fn carry(
    mut exchange: Exchange,
    give: &mpsc::Sender<Result<Bytes, GuestError>>,
    mut take: mpsc::Receiver<Up>,
) -> Result<(), GuestError> {
    let mut waiting: Option<Bytes> = None;
    let (mut program_ended, mut user_ended) = (false, false);
    while !(program_ended && user_ended && waiting.is_none() && !exchange.is_sending()) {
        let has_waiting = waiting.is_some();
        let has_room = !user_ended && !exchange.is_sending();
        let local = async {
            tokio::select! {
                place = give.reserve(), if has_waiting => place.map_or(Local::Gone, Local::Place),
                up = take.recv(), if has_room => up.map_or(Local::Gone, Local::Up),
                () = give.closed() => Local::Gone,
            }
        };
        match exchange.carry(!has_waiting, local).await? {
            Carried::Sent => {}
            Carried::Done(Local::Gone) => return Ok(()),
            Carried::Done(Local::Place(place)) => {
                if let Some(bytes) = waiting.take() {
                    place.send(Ok(bytes));
                }
            }
            Carried::Done(Local::Up(Up::Bytes(mut bytes))) => {
                while !bytes.is_empty() {
                    let some = bytes.split_to(bytes.len().min(PIECE));
                    exchange.put(FrameKind::Data, some);
                }
            }
            Carried::Done(Local::Up(Up::Finish)) => {
                user_ended = true;
                exchange.put(FrameKind::End, Bytes::new());
            }
            Carried::Frame(frame) => match frame.kind {
                FrameKind::Data if !program_ended && !frame.body.is_empty() => waiting = Some(frame.body),
                FrameKind::End if !program_ended => program_ended = true,
                _ => return Err(misbehaved(Verb::Connect, format!("a frame of kind {:?} out of turn", frame.kind))),
            },
        }
        if program_ended && waiting.is_none() && !user_ended {
            // The user reads the end when the channel closes, so only what it still writes is left to carry.
            return finish_up(exchange, take, give).await;
        }
    }
    exchange.finish();
    Ok(())
}

/// An agent that takes nothing may stop its user, but not keep this task when the user has gone.
async fn send_up(
    exchange: &mut Exchange,
    give: &mpsc::Sender<Result<Bytes, GuestError>>,
    kind: FrameKind,
    bytes: Bytes,
) -> Result<(), GuestError> {
    tokio::select! {
        biased;
        sent = exchange.send(kind, bytes) => sent,
        () = give.closed() => Err(gone()),
    }
}

/// The program has said all; the user may still be talking.
async fn finish_up(
    mut exchange: Exchange,
    mut take: mpsc::Receiver<Up>,
    give: &mpsc::Sender<Result<Bytes, GuestError>>,
) -> Result<(), GuestError> {
    let place = exchange.hold(give.reserve()).await?;
    if let Ok(place) = place {
        place.send(Ok(Bytes::new()));
    }
    loop {
        match exchange.hold(take.recv()).await? {
            None => return Ok(()),
            Some(Up::Finish) => {
                send_up(&mut exchange, give, FrameKind::End, Bytes::new()).await?;
                exchange.finish();
                return Ok(());
            }
            Some(Up::Bytes(mut bytes)) => {
                while !bytes.is_empty() {
                    let some = bytes.split_to(bytes.len().min(PIECE));
                    send_up(&mut exchange, give, FrameKind::Data, some).await?;
                }
            }
        }
    }
}
