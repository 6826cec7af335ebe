//! Recorded terminals: which there are of a sandbox, and each as it was kept.

use belljar_types::{ProcessId, SandboxId};
use bytes::Bytes;
use futures_util::Stream;
use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::error::ClientError;

/// A recorded terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingOf {
    /// The process whose terminal it is.
    pub process: ProcessId,
    /// When it began, RFC 3339.
    pub began_at: String,
    /// Its size as asciicast.
    pub bytes: u64,
}

#[derive(Deserialize)]
struct RecordingList {
    recordings: Vec<RecordingOf>,
}

impl Client {
    /// The recorded terminals of a sandbox, oldest first.
    pub async fn recordings(&self, sandbox: &SandboxId) -> Result<Vec<RecordingOf>, ClientError> {
        let list: RecordingList = self.ask(Method::GET, ["v1", "sandboxes", sandbox.as_str(), "recordings"]).fetch().await?;
        Ok(list.recordings)
    }

    /// A recorded terminal as asciicast, as it comes.
    pub async fn recording(
        &self,
        sandbox: &SandboxId,
        process: &ProcessId,
    ) -> Result<impl Stream<Item = Result<Bytes, ClientError>> + Send + 'static, ClientError> {
        let path = ["v1", "sandboxes", sandbox.as_str(), "recordings", process.as_str()];
        Ok(self.ask(Method::GET, path).send().await?.pieces())
    }
}
