//! A process's input, whole and once, whatever happens to the connection: every piece is sent at its offset until the server says that it was taken, and
//! what the process took before is not taken twice.

use std::sync::Arc;

use belljar_types::{ProcessId, SandboxId};
use bytes::Bytes;

use crate::client::Client;
use crate::error::ClientError;
use crate::patience::Patience;

/// Writes the input of one process.
pub struct Feeder {
    client: Client,
    sandbox: SandboxId,
    process: ProcessId,
    offset: u64,
    patience: Arc<Patience>,
}

impl Feeder {
    /// Writes from this offset on.
    pub fn new(client: Client, sandbox: SandboxId, process: ProcessId, offset: u64, patience: Arc<Patience>) -> Self {
        Self { client, sandbox, process, offset, patience }
    }

    /// Returns when the process, or its pipe, has taken all of it. `false`: it takes no more.
    pub async fn write(&mut self, bytes: Bytes) -> Result<bool, ClientError> {
        let (offset, length) = (self.offset, bytes.len() as u64);
        let written = self.patience.insist(|| self.client.write_stdin(&self.sandbox, &self.process, offset, bytes.clone())).await;
        match written {
            Ok(()) => {
                self.offset += length;
                Ok(true)
            }
            Err(error) if takes_no_more(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Ends it.
    pub async fn close(&self) -> Result<(), ClientError> {
        match self.patience.insist(|| self.client.close_stdin(&self.sandbox, &self.process)).await {
            Err(error) if !takes_no_more(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

/// The process has closed its input or is gone: no failure of ours, and its output and end say the rest.
fn takes_no_more(error: &ClientError) -> bool {
    matches!(error.code(), Some("guest_refused" | "process_not_found"))
}
