//! Frames: an 8-byte header and a body. The decoder is fed whatever bytes come and never makes room for more than the bound, whatever a
//! header claims.
//!
//! ```text
//!  0        4      5       6        8
//!  ┌────────┬──────┬───────┬────────┬───────────────┐
//!  │ length │ kind │ flags │  call  │ body (length) │     little-endian
//!  └────────┴──────┴───────┴────────┴───────────────┘
//! ```
//! `call` counts the calls of a connection: what is left over of an earlier call is not taken for an answer to this one. `flags` is 0; a side that
//! sees a bit it does not know gives the connection up, since it would misread what follows.

use bytes::{Buf, Bytes, BytesMut};

/// Bytes in a frame's header.
pub const FRAME_HEADER: usize = 8;

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameKind {
    /// [`crate::ClientHello`].
    ClientHello = 1,
    /// [`crate::AgentHello`].
    AgentHello = 2,
    /// [`crate::ClientProof`].
    ClientProof = 3,
    /// [`crate::Welcome`].
    Welcome = 4,
    /// A verb's number (2 bytes) and its body.
    Request = 5,
    /// A verb's answer.
    Response = 6,
    /// [`crate::Failure`]: the call is over.
    Failure = 7,
    /// Raw content.
    Data = 8,
    /// Output of a process: [`crate::wire::OutputHeader`] and raw bytes.
    Output = 9,
    /// Something that is not bytes, in the middle of a stream of them: a gap, an exit.
    Notice = 10,
    /// Several items of a list.
    Items = 11,
    /// How far a reader has got: [`crate::wire::Ack`].
    Ack = 12,
    /// Nothing more comes from this side in this call.
    End = 13,
    /// Still here.
    Heartbeat = 14,
}

impl FrameKind {
    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::ClientHello,
            2 => Self::AgentHello,
            3 => Self::ClientProof,
            4 => Self::Welcome,
            5 => Self::Request,
            6 => Self::Response,
            7 => Self::Failure,
            8 => Self::Data,
            9 => Self::Output,
            10 => Self::Notice,
            11 => Self::Items,
            12 => Self::Ack,
            13 => Self::End,
            14 => Self::Heartbeat,
            _ => return None,
        })
    }
}

/// A frame that came whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What it carries.
    pub kind: FrameKind,
    /// Which call of the connection it belongs to.
    pub call: u16,
    /// Its body.
    pub body: Bytes,
}

/// Bytes that are no frame; nothing after them can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The body would be longer than is allowed here.
    #[error("a frame of {length} bytes where {limit} are allowed")]
    TooLong {
        /// What the header says.
        length: u32,
        /// What is allowed.
        limit: u32,
    },
    /// No such kind.
    #[error("a frame of unknown kind {kind}")]
    UnknownKind {
        /// What the header says.
        kind: u8,
    },
    /// A flag that this side does not know.
    #[error("a frame with unknown flags {flags:#04x}")]
    UnknownFlags {
        /// What the header says.
        flags: u8,
    },
}

/// A header for a body of this length.
pub fn frame_header(kind: FrameKind, call: u16, length: u32) -> [u8; FRAME_HEADER] {
    let [l0, l1, l2, l3] = length.to_le_bytes();
    let [c0, c1] = call.to_le_bytes();
    [l0, l1, l2, l3, kind as u8, 0, c0, c1]
}

/// A whole frame. The caller keeps bodies below the limits; a body of 4 GiB cannot be made by this crate.
pub fn encode_frame(kind: FrameKind, call: u16, body: &[u8]) -> Bytes {
    let length = u32::try_from(body.len()).expect("bodies are kept below MAX_REQUEST");
    let mut out = BytesMut::with_capacity(FRAME_HEADER + body.len());
    out.extend_from_slice(&frame_header(kind, call, length));
    out.extend_from_slice(body);
    out.freeze()
}

/// Turns a stream of bytes into frames.
#[derive(Debug)]
pub struct Decoder {
    limit: u32,
    buffer: BytesMut,
}

impl Decoder {
    /// Takes bodies of up to `limit` bytes.
    pub fn new(limit: u32) -> Self {
        Self { limit, buffer: BytesMut::new() }
    }

    /// From now on takes bodies of up to `limit` bytes.
    pub fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
    }

    /// Where the next bytes go. Room is made only for what the bound allows: read at most [`Decoder::wanted`] bytes into it.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// How many more bytes may be read now: at least 1, at most a frame of the longest kind and the header of the next.
    pub fn wanted(&self) -> usize {
        (FRAME_HEADER + self.limit as usize + FRAME_HEADER).saturating_sub(self.buffer.len()).max(1)
    }

    /// How many bytes the frame that has begun still lacks, as its header says; nothing before that has come whole.
    pub fn lacking(&self) -> usize {
        let Some([l0, l1, l2, l3, ..]) = self.buffer.first_chunk::<FRAME_HEADER>() else { return 0 };
        let length = u32::from_le_bytes([*l0, *l1, *l2, *l3]).min(self.limit);
        (FRAME_HEADER + length as usize).saturating_sub(self.buffer.len())
    }

    /// Whether a part of a frame is waiting for its rest.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Adds bytes; for callers that do not read into [`Decoder::buffer`].
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame, if it is there.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some(header) = self.buffer.first_chunk::<FRAME_HEADER>() else { return Ok(None) };
        let [l0, l1, l2, l3, kind, flags, c0, c1] = *header;
        let length = u32::from_le_bytes([l0, l1, l2, l3]);
        if length > self.limit {
            return Err(FrameError::TooLong { length, limit: self.limit });
        }
        let kind = FrameKind::from_byte(kind).ok_or(FrameError::UnknownKind { kind })?;
        if flags != 0 {
            return Err(FrameError::UnknownFlags { flags });
        }
        if self.buffer.len() - FRAME_HEADER < length as usize {
            return Ok(None);
        }
        self.buffer.advance(FRAME_HEADER);
        let body = self.buffer.split_to(length as usize).freeze();
        Ok(Some(Frame { kind, call: u16::from_le_bytes([c0, c1]), body }))
    }
}

#[cfg(test)]
#[path = "frame/tests.rs"]
mod tests;
