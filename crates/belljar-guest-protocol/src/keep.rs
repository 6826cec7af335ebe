//! What `belljar-keep` inside a sandbox and the agent say to each other over the agent's local socket: one request, one answer.
//!
//! Who asks is told by the kernel (`SCM_CREDENTIALS`), never by these messages.

use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};

/// Where the agent waits for `belljar-keep`.
pub const SOCKET: &str = "/run/belljar/keep.sock";

/// The longest request: a path, a name and a type.
pub const MAX_KEEP: u32 = 8 << 10;

/// A file to keep; the body of a [`crate::FrameKind::Request`] frame.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct KeepRequest {
    /// Where it is, from the root.
    #[n(0)]
    pub path: ByteVec,
    /// What to call it.
    #[n(1)]
    pub name: Option<String>,
    /// What it is.
    #[n(2)]
    pub media_type: Option<String>,
}

/// It was kept; the body of a [`crate::FrameKind::Response`] frame. A refusal is a [`crate::Failure`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Kept {
    /// The artifact's id.
    #[n(0)]
    pub artifact: String,
}
