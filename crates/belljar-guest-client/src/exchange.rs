//! One call on one connection: the request, then checked frames until it is over.
//!
//! An exchange that is dropped before [`Exchange::finish`] takes its connection with it: what is still under way cannot be taken for an answer to
//! the next call.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use belljar_guest_line::{Carried, Driven};
use belljar_guest_protocol::{Failure, Frame, FrameKind, MAX_REQUEST, Verb, decode, encode};
use belljar_ports::GuestError;
use belljar_types::{Invalid, ProcessId};
use bytes::Bytes;

use crate::error::{line_failed, misbehaved, refused, too_slow};
use crate::pool::{Connection, Pool};

/// A call under way.
pub(crate) struct Exchange {
    pool: Arc<Pool>,
    connection: Connection,
    pub(crate) verb: Verb,
    process: Option<ProcessId>,
}

/// Whether a request may be sent again on a new connection if an idle one turns out to be dead.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// Doing it twice is the same as once.
    Safe,
    /// It may have been done.
    Unsafe,
}

/// What is asked.
pub(crate) struct Asked {
    pub(crate) verb: Verb,
    pub(crate) again: Again,
    /// The process that it is about, for errors.
    pub(crate) process: Option<ProcessId>,
    body: Bytes,
}

impl Asked {
    pub(crate) fn new<T: minicbor::Encode<()>>(verb: Verb, again: Again, body: &T) -> Result<Self, GuestError> {
        let mut request = verb.number().to_le_bytes().to_vec();
        request.extend(encode(body));
        if request.len() > MAX_REQUEST as usize {
            let got = format!("{} bytes", request.len());
            return Err(Invalid::new("request", format!("at most {MAX_REQUEST} bytes for arguments, environment and paths"), got).into());
        }
        Ok(Self { verb, again, process: None, body: request.into() })
    }

    pub(crate) fn about(mut self, process: &ProcessId) -> Self {
        self.process = Some(process.clone());
        self
    }
}

impl Exchange {
    /// Sends a request.
    pub(crate) async fn open(pool: &Arc<Pool>, asked: &Asked) -> Result<Self, GuestError> {
        let connection = pool.take(asked.verb).await?;
        Self::begin(pool, connection, asked).await
    }

    async fn open_anew(pool: &Arc<Pool>, asked: &Asked) -> Result<Self, GuestError> {
        let connection = pool.make(asked.verb).await?;
        Self::begin(pool, connection, asked).await
    }

    async fn begin(pool: &Arc<Pool>, mut connection: Connection, asked: &Asked) -> Result<Self, GuestError> {
        let verb = asked.verb;
        if verb.since() > connection.generation {
            let generation = connection.generation;
            pool.put_back(connection);
            return Err(GuestError::TooOld { generation, verb: verb.words() });
        }
        connection.begin();
        let mut exchange = Self { pool: Arc::clone(pool), connection, verb, process: asked.process.clone() };
        exchange.send(FrameKind::Request, asked.body.clone()).await?;
        Ok(exchange)
    }

    /// Sends a request and takes its first answer, within `limit`. Tries again once if a connection that was idle is dead.
    pub(crate) async fn ask<T: for<'b> minicbor::Decode<'b, ()>>(
        pool: &Arc<Pool>,
        asked: &Asked,
        limit: Duration,
    ) -> Result<(Self, T), GuestError> {
        let attempt = async {
            let connection = pool.take(asked.verb).await?;
            let reused = connection.reused;
            let first = async {
                let mut exchange = Self::begin(pool, connection, asked).await?;
                let frame = exchange.next_frame().await?;
                Ok((exchange, frame))
            };
            let (exchange, frame) = match first.await {
                Err(GuestError::Lost { .. }) if reused && asked.again == Again::Safe => {
                    let mut exchange = Self::open_anew(pool, asked).await?;
                    let frame = exchange.next_frame().await?;
                    (exchange, frame)
                }
                other => other?,
            };
            match exchange.check_failure(frame) {
                Ok(frame) => {
                    let answer = exchange.take_response(&frame)?;
                    Ok((exchange, answer))
                }
                Err(error) => {
                    // A refusal is an answer like any other; only nonsense costs the connection.
                    if !matches!(error, GuestError::Misbehaved { .. }) {
                        exchange.finish();
                    }
                    Err(error)
                }
            }
        };
        tokio::time::timeout(limit, attempt).await.unwrap_or_else(|_| Err(too_slow(asked.verb)))
    }

    /// Opens a call that stays open in silence, on a connection of its own: those that wait for the next call are left for it.
    pub(crate) async fn open_silent(pool: &Arc<Pool>, asked: &Asked, limit: Duration) -> Result<Self, GuestError> {
        let opened = async {
            let mut exchange = Self::open_anew(pool, asked).await?;
            let frame = exchange.receive().await?;
            exchange.take_response::<()>(&frame)?;
            exchange.connection.line.bear_silence();
            Ok(exchange)
        };
        tokio::time::timeout(limit, opened).await.unwrap_or_else(|_| Err(too_slow(asked.verb)))
    }

    /// Asks, takes the one answer and ends the call.
    pub(crate) async fn once<T: for<'b> minicbor::Decode<'b, ()>>(
        pool: &Arc<Pool>,
        asked: &Asked,
        limit: Duration,
    ) -> Result<T, GuestError> {
        let (exchange, answer) = Self::ask(pool, asked, limit).await?;
        exchange.finish();
        Ok(answer)
    }

    /// The generation that is spoken on this connection.
    pub(crate) fn generation(&self) -> u16 {
        self.connection.generation
    }

    /// The call is over; the connection can be used for the next.
    pub(crate) fn finish(self) {
        self.pool.put_back(self.connection);
    }

    pub(crate) async fn send(&mut self, kind: FrameKind, body: Bytes) -> Result<(), GuestError> {
        self.connection.line.send(kind, body).await.map_err(|error| line_failed(self.verb, error))
    }

    async fn next_frame(&mut self) -> Result<Frame, GuestError> {
        let frame = self.connection.line.receive().await.map_err(|error| line_failed(self.verb, error))?;
        self.check_call(frame)
    }

    /// The next frame of this call; a failure is told as the error that it is.
    pub(crate) async fn receive(&mut self) -> Result<Frame, GuestError> {
        let frame = self.next_frame().await?;
        self.check_failure(frame)
    }

    /// A frame that is here already.
    pub(crate) fn received(&mut self) -> Result<Option<Frame>, GuestError> {
        let frame = self.connection.line.received().map_err(|error| line_failed(self.verb, error))?;
        frame.map(|frame| self.check(frame)).transpose()
    }

    /// Waits for `work` or a frame.
    pub(crate) async fn drive<F: Future>(&mut self, work: F) -> Result<Driven<F::Output>, GuestError> {
        match self.connection.line.drive(work).await.map_err(|error| line_failed(self.verb, error))? {
            Driven::Frame(frame) => Ok(Driven::Frame(self.check(frame)?)),
            done @ Driven::Done(_) => Ok(done),
        }
    }

    /// Waits for `work` while frames wait.
    pub(crate) async fn hold<F: Future>(&mut self, work: F) -> Result<F::Output, GuestError> {
        self.connection.line.hold(work).await.map_err(|error| line_failed(self.verb, error))
    }

    /// Hands over a frame that goes out during whatever is waited for next.
    pub(crate) fn put(&mut self, kind: FrameKind, body: Bytes) {
        self.connection.line.put(kind, body);
    }

    /// Whether some of what was handed over is still here.
    pub(crate) fn is_sending(&self) -> bool {
        self.connection.line.is_sending()
    }

    /// Waits for `work`, for a frame if it `takes` one now, or until all that was put is on its way.
    pub(crate) async fn carry<F: Future>(&mut self, takes: bool, work: F) -> Result<Carried<F::Output>, GuestError> {
        match self.connection.line.carry(takes, work).await.map_err(|error| line_failed(self.verb, error))? {
            Carried::Frame(frame) => Ok(Carried::Frame(self.check(frame)?)),
            other => Ok(other),
        }
    }

    fn check(&self, frame: Frame) -> Result<Frame, GuestError> {
        self.check_call(frame).and_then(|frame| self.check_failure(frame))
    }

    fn check_call(&self, frame: Frame) -> Result<Frame, GuestError> {
        if frame.call == self.connection.line.call() { Ok(frame) } else { Err(misbehaved(self.verb, "it answered another call")) }
    }

    fn check_failure(&self, frame: Frame) -> Result<Frame, GuestError> {
        if frame.kind != FrameKind::Failure {
            return Ok(frame);
        }
        let failure: Failure = decode(&frame.body).map_err(|_| misbehaved(self.verb, "a malformed failure"))?;
        Err(refused(self.verb, self.connection.generation, self.process.as_ref(), &failure))
    }

    /// Takes a frame as the answer.
    pub(crate) fn take_response<T: for<'b> minicbor::Decode<'b, ()>>(&self, frame: &Frame) -> Result<T, GuestError> {
        if frame.kind != FrameKind::Response {
            return Err(self.out_of_turn(frame));
        }
        decode(&frame.body).map_err(|_| misbehaved(self.verb, "a malformed answer"))
    }

    pub(crate) fn out_of_turn(&self, frame: &Frame) -> GuestError {
        misbehaved(self.verb, format!("a frame of kind {:?} out of turn", frame.kind))
    }
}
