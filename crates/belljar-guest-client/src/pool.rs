//! Connections to one agent: made when needed, proved on both sides, kept for the next call.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use belljar_guest_line::{AsyncStream, Line, Patience};
use belljar_guest_protocol::{
    AgentHello, ClientHello, ClientProof, FrameKind, HANDSHAKE_LIMIT, MAX_FRAME, MAX_HANDSHAKE, Nonce, Proofs, SPOKEN, Verb, Welcome,
    decode, encode,
};
use belljar_ports::GuestError;
use tokio::sync::Semaphore;

use crate::connect::{Connect, Credentials};
use crate::error::{line_failed, misbehaved, too_slow};

/// Idle connections that are kept.
const IDLE: usize = 8;
/// Connections that prove themselves at one time: half of what an agent lets try at once, since two servers may overlap for a moment.
const HANDSHAKES: usize = 8;

/// A connection on which both sides have proved themselves.
pub(crate) struct Connection {
    pub(crate) line: Line<Box<dyn AsyncStream>>,
    pub(crate) generation: u16,
    /// It was used before, so it may have died since.
    pub(crate) reused: bool,
    last_call: u16,
}

impl Connection {
    /// Opens the next call.
    pub(crate) fn begin(&mut self) {
        self.last_call = self.last_call.wrapping_add(1);
        self.line.begin(self.last_call);
    }
}

/// All connections to one agent.
pub(crate) struct Pool {
    connect: Arc<dyn Connect>,
    credentials: Credentials,
    pub(crate) patience: Patience,
    idle: Mutex<Vec<Connection>>,
    handshakes: Semaphore,
}

impl Pool {
    pub(crate) fn new(connect: Arc<dyn Connect>, credentials: Credentials, patience: Patience) -> Self {
        Self { connect, credentials, patience, idle: Mutex::default(), handshakes: Semaphore::new(HANDSHAKES) }
    }

    pub(crate) fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// An idle connection that still looks well, or a new one.
    pub(crate) async fn take(&self, verb: Verb) -> Result<Connection, GuestError> {
        while let Some(mut connection) = self.pop() {
            if connection.line.is_quiet() {
                return Ok(connection);
            }
        }
        self.make(verb).await
    }

    /// A new connection.
    pub(crate) async fn make(&self, verb: Verb) -> Result<Connection, GuestError> {
        // An agent hangs up on those who come while too many others try; it is never closed, so there is always a turn.
        let _turn = self.handshakes.acquire().await;
        let made = async {
            let stream = self.connect.connect().await.map_err(|source| GuestError::Lost { operation: verb.words(), source })?;
            self.shake_hands(verb, stream).await
        };
        tokio::time::timeout(HANDSHAKE_LIMIT, made).await.unwrap_or_else(|_| Err(too_slow(verb)))
    }

    /// Keeps a connection whose call is over.
    pub(crate) fn put_back(&self, mut connection: Connection) {
        connection.line.finish();
        connection.reused = true;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE {
            idle.push(connection);
        }
    }

    /// Hangs up what is idle, and waits for the other side to do so too.
    pub(crate) async fn hang_up(&self, limit: Duration) {
        while let Some(connection) = self.pop() {
            connection.line.hang_up(limit).await;
        }
    }

    fn pop(&self) -> Option<Connection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    async fn shake_hands(&self, verb: Verb, stream: Box<dyn AsyncStream>) -> Result<Connection, GuestError> {
        let mut line = Line::new(stream, MAX_HANDSHAKE, self.patience);
        let mut nonce = [0u8; 32];
        getrandom::fill(&mut nonce)
            .map_err(|error| GuestError::Lost { operation: verb.words(), source: io::Error::other(error.to_string()) })?;
        let nonce = Nonce::from(nonce);
        say(verb, &mut line, FrameKind::ClientHello, &ClientHello { generations: SPOKEN, nonce }).await?;
        let hello: AgentHello = hear(verb, &mut line, FrameKind::AgentHello).await?;
        let generation = SPOKEN.common(hello.generations).ok_or_else(|| {
            let (ours, its) = (SPOKEN, hello.generations);
            let detail = format!("it speaks generations {} to {}, this host {} to {}", its.oldest, its.newest, ours.oldest, ours.newest);
            misbehaved(verb, detail)
        })?;
        let proofs = Proofs {
            token: &self.credentials.token,
            sandbox: &self.credentials.sandbox,
            execution: &self.credentials.execution,
            generation,
            client_nonce: &nonce,
            agent_nonce: &hello.nonce,
        };
        if !proofs.agent_proved(&hello.proof) {
            return Err(misbehaved(verb, "it did not prove to be the agent of this run of the sandbox"));
        }
        say(verb, &mut line, FrameKind::ClientProof, &ClientProof { proof: proofs.client() }).await?;
        let _: Welcome = hear(verb, &mut line, FrameKind::Welcome).await?;
        line.set_limit(MAX_FRAME);
        Ok(Connection { line, generation, reused: false, last_call: 0 })
    }
}

async fn say<T: minicbor::Encode<()>>(
    verb: Verb,
    line: &mut Line<Box<dyn AsyncStream>>,
    kind: FrameKind,
    body: &T,
) -> Result<(), GuestError> {
    line.send(kind, encode(body).into()).await.map_err(|error| line_failed(verb, error))
}

async fn hear<T: for<'b> minicbor::Decode<'b, ()>>(
    verb: Verb,
    line: &mut Line<Box<dyn AsyncStream>>,
    kind: FrameKind,
) -> Result<T, GuestError> {
    let frame = line.receive().await.map_err(|error| line_failed(verb, error))?;
    if frame.kind != kind {
        return Err(misbehaved(verb, format!("{:?} where {kind:?} was due", frame.kind)));
    }
    decode(&frame.body).map_err(|_| misbehaved(verb, format!("a malformed {kind:?}")))
}
