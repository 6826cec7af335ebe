//! What the host and the agent in a sandbox say to each other. No I/O happens here.
//!
//! ```text
//!  one TCP connection, one call at a time, many calls one after the other
//!
//!  client                                       agent
//!    │── ClientHello (generations, nonce) ───────▶│
//!    │◀─ AgentHello (generation, nonce, proof) ───│   the agent proves itself first: the client tells nothing to a stranger
//!    │── ClientProof ─────────────────────────────▶│
//!    │◀─ Welcome (who, version) ──────────────────│
//!    │── Request (verb, body) ────────────────────▶│  ┐
//!    │── Data* End ───────────────────────────────▶│  │ verbs that carry content up
//!    │◀─ Response (body) │ Failure ───────────────│  │ one call
//!    │◀─ Output* │ Data* │ Items* ── End ─────────│  ┘ verbs that carry content down
//! ```
//!
//! While a call is open each side sends a [`FrameKind::Heartbeat`] when it has nothing else to say for [`HEARTBEAT_EVERY`], and gives the
//! connection up after [`SILENCE_LIMIT`] without a whole frame. Only [`Verb::Wishes`] is silent once it is answered: it is open for as long as a sandbox
//! runs, and an idle sandbox costs nothing. Bodies have numbered fields, so that a newer side can add some and an older one
//! skips them.

mod boot;
mod failure;
mod frame;
mod generation;
mod handshake;
pub mod keep;
pub mod sudo;
pub mod wire;

pub use boot::{BootConfig, BootError};
pub use failure::{Failure, FailureCode};
pub use frame::{Decoder, FRAME_HEADER, Frame, FrameError, FrameKind, encode_frame, frame_header};
pub use generation::{Generations, SPOKEN, Verb};
pub use handshake::{AgentHello, ClientHello, ClientProof, Nonce, Proof, Proofs, Welcome};

use std::net::Ipv4Addr;
use std::time::Duration;

/// Where the agent listens inside the sandbox.
pub const AGENT_PORT: u16 = 10240;

/// The longest frame body an agent sends, and the longest piece of content either side sends.
pub const MAX_FRAME: u32 = 256 << 10;

/// The longest request body a client sends: a command line with its environment.
pub const MAX_REQUEST: u32 = 1 << 20;

/// The longest frame body before both sides have proved themselves.
pub const MAX_HANDSHAKE: u32 = 1 << 10;

/// How long a side may be silent in an open call before it sends a heartbeat.
pub const HEARTBEAT_EVERY: Duration = Duration::from_secs(5);

/// After how long without a byte in an open call the other side is given up.
pub const SILENCE_LIMIT: Duration = Duration::from_secs(20);

/// How long the handshake may take.
pub const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);

/// The gateway of an agent with this address: the first of the two addresses in a network of four.
pub fn gateway_of(agent: Ipv4Addr) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(agent) & !3 | 1)
}

/// Encodes a body.
pub fn encode<T: minicbor::Encode<()> + ?Sized>(body: &T) -> Vec<u8> {
    minicbor::to_vec(body).expect("writing to memory cannot fail, and no body refuses to be written")
}

/// Decodes a body; what follows the last known field is skipped, what follows the body is an error.
pub fn decode<'b, T: minicbor::Decode<'b, ()>>(bytes: &'b [u8]) -> Result<T, Malformed> {
    let mut decoder = minicbor::Decoder::new(bytes);
    let body = decoder.decode().map_err(Malformed::Body)?;
    if decoder.position() == bytes.len() { Ok(body) } else { Err(Malformed::Trailing { bytes: bytes.len() - decoder.position() }) }
}

/// A body that does not say what it should.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    /// It is not the expected structure.
    #[error("read a message body")]
    Body(#[source] minicbor::decode::Error),
    /// Something follows it.
    #[error("{bytes} bytes follow a message body")]
    Trailing {
        /// How many.
        bytes: usize,
    },
}
