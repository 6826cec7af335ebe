//! How a connection to an agent is made is the engine's business; what it must be is said here.

use async_trait::async_trait;
use belljar_guest_line::AsyncStream;
use belljar_types::{ExecutionId, SandboxId, Secret};

/// Makes connections to one sandbox's agent.
#[async_trait]
pub trait Connect: Send + Sync {
    /// A new connection. Called again when earlier ones are in use or broken; the caller bounds how long it may take.
    async fn connect(&self) -> std::io::Result<Box<dyn AsyncStream>>;
}

/// Who is expected at the other end, and the secret both know.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// The sandbox.
    pub sandbox: SandboxId,
    /// Its run.
    pub execution: ExecutionId,
    /// The run's token, as in the boot configuration.
    pub token: Secret<[u8; 32]>,
}
