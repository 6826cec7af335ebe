//! Snapshots on their way to other servers, and from them.

use bytes::Bytes;
use futures_util::Stream;
use reqwest::{Body, Method};
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::error::ClientError;
use crate::snapshots::SnapshotView;

/// How to keep a snapshot that comes in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct NewImport {
    /// What to call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How long it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u64>,
}

/// A snapshot that can be pulled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushedSnapshot {
    /// What to pull it as.
    pub name: String,
    /// Which snapshot it was.
    pub snapshot: String,
    /// What it holds.
    pub kind: String,
    /// Bytes that were sent.
    pub bytes: u64,
    /// Their SHA-256.
    pub sha256: String,
}

impl Client {
    /// A snapshot as one file, as it comes.
    pub async fn export_snapshot(
        &self,
        which: &str,
    ) -> Result<impl Stream<Item = Result<Bytes, ClientError>> + Send + 'static, ClientError> {
        Ok(self.ask(Method::GET, ["v1", "snapshots", which, "file"]).send().await?.pieces())
    }

    /// Takes in a snapshot that was exported, sent as it is read.
    pub async fn import_snapshot(&self, file: impl Into<Body>, how: &NewImport) -> Result<SnapshotView, ClientError> {
        self.ask(Method::POST, ["v1", "snapshot-imports"]).query(how).bytes(file).fetch().await
    }

    /// Puts a snapshot where other servers can pull it.
    pub async fn push_snapshot(&self, which: &str) -> Result<PushedSnapshot, ClientError> {
        self.ask(Method::POST, ["v1", "snapshots", which, "push"]).fetch().await
    }

    /// Takes in a snapshot that was pushed.
    pub async fn pull_snapshot(&self, pushed: &str, how: &NewImport) -> Result<SnapshotView, ClientError> {
        #[derive(Serialize)]
        struct Pull<'a> {
            name: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            rename: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            expires_in_seconds: Option<u64>,
        }
        let request = Pull { name: pushed, rename: how.name.as_deref(), expires_in_seconds: how.expires_in_seconds };
        self.ask(Method::POST, ["v1", "snapshot-pulls"]).json(&request).fetch().await
    }
}
