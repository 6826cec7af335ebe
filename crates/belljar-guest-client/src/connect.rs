//! How a connection to an agent is made is the engine's business; what it must be is said here.

use async_trait::async_trait;
use belljar_types::{ExecutionId, SandboxId, Secret};
use tokio::io::{AsyncRead, AsyncWrite};

/// A two-way byte stream.
pub trait AsyncStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + ?Sized> AsyncStream for T {}

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
