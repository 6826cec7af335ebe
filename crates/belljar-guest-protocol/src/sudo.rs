//! What `sudo` inside a sandbox and the agent say to each other over the agent's local socket, in the same frames.
//!
//! Who asks is told by the kernel (`SCM_CREDENTIALS`), never by these messages. The asker's standard input, output and error travel beside the request.

use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};

/// Where the agent waits for `sudo`.
pub const SOCKET: &str = "/run/belljar/sudo.sock";

/// A command to run as somebody else; the body of a [`crate::FrameKind::Request`] frame.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SudoRequest {
    /// Program and arguments; the target's shell when empty.
    #[n(0)]
    pub argv: Vec<ByteVec>,
    /// The asker's environment, `NAME=value`.
    #[n(1)]
    pub env: Vec<ByteVec>,
    /// Where it runs.
    #[n(2)]
    pub cwd: ByteVec,
    /// As whom; root when unset.
    #[n(3)]
    pub user: Option<String>,
    /// Keep the asker's environment (`-E`).
    #[n(4)]
    pub keep_env: bool,
    /// Run through the target's login shell, in their home (`-i`).
    #[n(5)]
    pub login: bool,
    /// Run through the target's shell (`-s`).
    #[n(6)]
    pub shell: bool,
    /// Whether the first of the three descriptors is a terminal that the command gets as its own.
    #[n(7)]
    pub terminal: bool,
    /// As which group.
    #[n(8)]
    pub group: Option<String>,
    /// Variables given on the command line, `NAME=value`.
    #[n(9)]
    pub set: Vec<ByteVec>,
}

/// A signal that the asker got; the body of a [`crate::FrameKind::Notice`] frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct SudoSignal {
    /// Its number.
    #[n(0)]
    pub signal: u8,
}

/// How the command ended; the body of a [`crate::FrameKind::Response`] frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct SudoExit {
    /// Its exit code.
    #[n(0)]
    pub code: Option<i32>,
    /// The signal that ended it.
    #[n(1)]
    pub signal: Option<u8>,
}
