//! One process on one WebSocket.
//!
//! ```text
//!  client ──► up ──► (8 pieces) ──► stdin writer ──► agent          a full pipe stops the reading of further messages
//!             └─► resize, signal ─────────────────► agent
//!  client ◄── down ◄── output of the agent                          a slow client stops the reading of output
//!                  ◄── acknowledgements, refusals, pings
//! ```
//!
//! The process does not depend on the socket: when it is cut, the process goes on, and whoever attaches again at the offsets they had loses nothing.

mod message;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use belljar_core::{CoreError, OutputStream, Session};
use belljar_http::Problem;
use belljar_types::{OutputEvent, ProcessInfo};
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use self::message::{FromClient, Stdin, ToClient};
use super::{HEARTBEAT, how_it_ended};
use crate::translate;

/// Pings in a row that may go unanswered.
const UNANSWERED: u32 = 4;
/// How long a client may take to say what to start.
const FIRST_MESSAGE: Duration = Duration::from_secs(30);
/// After a sandbox began to end, what is under way still gets this long.
const LAST_WORDS: Duration = Duration::from_secs(2);

enum Input {
    Bytes { offset: Option<u64>, bytes: Bytes },
    Eof,
}

/// The server's side of one WebSocket.
pub(crate) struct Socket {
    session: Session,
    info: ProcessInfo,
    unanswered: AtomicU32,
}

impl Socket {
    /// Starts what the first message asks for.
    pub(crate) async fn start(mut socket: WebSocket, session: Session) {
        let first = match tokio::time::timeout(FIRST_MESSAGE, socket.recv()).await {
            Ok(Some(Ok(Message::Text(text)))) => text,
            Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) => return,
            _ => return refuse(socket, &Problem::invalid("type", "type: expected a first message of type start")).await,
        };
        let spec = FromClient::read(&first).and_then(|message| match message {
            FromClient::Start(request) => Ok(translate::start(*request)?),
            _ => Err(Problem::invalid("type", "type: expected start in the first message")),
        });
        let started = match spec {
            Ok(spec) => match session.start_attached(&spec).await {
                Ok(started) => Ok(started),
                Err(error) => Err(session.explain(error).await.into()),
            },
            Err(problem) => Err(problem),
        };
        match started {
            Ok((info, events)) => Self::run(socket, session, info, events, true).await,
            Err(problem) => refuse(socket, &problem).await,
        }
    }

    /// Goes on with a process that is there.
    pub(crate) async fn attached(socket: WebSocket, session: Session, info: ProcessInfo, events: OutputStream) {
        Self::run(socket, session, info, events, false).await;
    }

    async fn run(socket: WebSocket, session: Session, info: ProcessInfo, events: OutputStream, is_new: bool) {
        let (mut sink, stream) = socket.split();
        let process = Box::new(translate::process_view(&info));
        let first = if is_new { ToClient::Started { process } } else { ToClient::Attached { process } };
        if sink.send(first.message()).await.is_err() {
            return;
        }
        let this = Self { session, info, unanswered: AtomicU32::new(0) };
        let (reply, replies) = mpsc::channel(8);
        let (input, inputs) = mpsc::channel(8);
        tokio::select! {
            () = this.down(&mut sink, events, replies) => {}
            () = async { tokio::join!(this.up(stream, input, reply.clone()), this.write(inputs, reply.clone())); } => {}
        }
    }

    /// Everything that goes to the client, in one place, so that nothing overtakes its own acknowledgement.
    async fn down(&self, sink: &mut SplitSink<WebSocket, Message>, mut events: OutputStream, mut replies: mpsc::Receiver<ToClient>) {
        let mut pings = tokio::time::interval(HEARTBEAT);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pings.reset();
        let ended = async {
            self.session.ended().await;
            tokio::time::sleep(LAST_WORDS).await;
        };
        tokio::pin!(ended);
        loop {
            let (message, last) = tokio::select! {
                biased;
                Some(reply) = replies.recv() => (reply.message(), None),
                event = events.next() => match event {
                    Some(Ok(OutputEvent::Exit(exit))) => (ToClient::Exit(translate::exit_view(exit)).message(), Some(close_code::NORMAL)),
                    Some(Ok(event)) => (message::output(event), None),
                    Some(Err(error)) => (failed(self.session.explain(error).await), Some(close_code::ERROR)),
                    None => (failed(how_it_ended(&self.session)), Some(close_code::ERROR)),
                },
                () = &mut ended => (failed(how_it_ended(&self.session)), Some(close_code::ERROR)),
                _ = pings.tick() => {
                    if self.unanswered.fetch_add(1, Ordering::Relaxed) >= UNANSWERED {
                        return;
                    }
                    (Message::Ping(Bytes::new()), None)
                }
            };
            if sink.send(message).await.is_err() {
                return;
            }
            if let Some(code) = last {
                // The client may close first; either way it is over.
                let _ = sink.send(Message::Close(Some(CloseFrame { code, reason: "".into() }))).await;
                return;
            }
        }
    }

    /// Everything that comes from the client, until it leaves.
    async fn up(&self, mut stream: SplitStream<WebSocket>, input: mpsc::Sender<Input>, reply: mpsc::Sender<ToClient>) {
        while let Some(Ok(message)) = stream.next().await {
            self.unanswered.store(0, Ordering::Relaxed);
            let done = match message {
                Message::Binary(bytes) => match Stdin::read(bytes) {
                    Ok(Stdin { offset, bytes }) => {
                        // The writer lives as long as this does.
                        let _ = input.send(Input::Bytes { offset, bytes }).await;
                        Ok(())
                    }
                    Err(problem) => Err(problem),
                },
                Message::Text(text) => match FromClient::read(&text) {
                    Ok(FromClient::Eof) => {
                        let _ = input.send(Input::Eof).await;
                        Ok(())
                    }
                    Ok(order) => self.obey(order).await,
                    Err(problem) => Err(problem),
                },
                Message::Ping(_) | Message::Pong(_) => Ok(()),
                Message::Close(_) => return,
            };
            if let Err(problem) = done {
                let _ = reply.send(ToClient::refused(&problem)).await;
            }
        }
    }

    async fn obey(&self, order: FromClient) -> Result<(), Problem> {
        let done = match order {
            FromClient::Resize(size) if size.columns == 0 || size.rows == 0 => {
                return Err(Problem::invalid("columns", "columns: expected at least 1 column and 1 row"));
            }
            FromClient::Resize(size) => self.session.resize(&self.info.id, translate::pty(size)).await,
            FromClient::Signal(request) => self.session.signal(&self.info.id, translate::signal(&request.signal)?).await,
            FromClient::Start(_) | FromClient::Eof => return Err(Problem::invalid("type", "type: the process has been started already")),
        };
        match done {
            Ok(()) => Ok(()),
            Err(error) => Err(self.session.explain(error).await.into()),
        }
    }

    /// Writes to standard input, in order, and says how far it came.
    async fn write(&self, mut inputs: mpsc::Receiver<Input>, reply: mpsc::Sender<ToClient>) {
        let mut next = self.info.stdin_offset;
        while let Some(input) = inputs.recv().await {
            let done = match input {
                Input::Eof => self.session.close_stdin(&self.info.id).await,
                Input::Bytes { offset, bytes } => {
                    let (at, length) = (offset.unwrap_or(next), bytes.len() as u64);
                    let written = self.session.write_stdin(&self.info.id, at, bytes).await;
                    if written.is_ok() {
                        next = at.saturating_add(length);
                    }
                    written
                }
            };
            let answer = match done {
                Ok(()) => ToClient::Stdin { offset: next },
                Err(error) => ToClient::refused(&self.session.explain(error).await.into()),
            };
            if reply.send(answer).await.is_err() {
                return;
            }
        }
    }
}

fn failed(error: CoreError) -> Message {
    ToClient::error(&error.into()).message()
}

async fn refuse(mut socket: WebSocket, problem: &Problem) {
    // A client that has gone needs no reason.
    let _ = socket.send(ToClient::error(problem).message()).await;
    let _ = socket.send(Message::Close(Some(CloseFrame { code: close_code::POLICY, reason: "".into() }))).await;
}
