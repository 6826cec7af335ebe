//! Artifacts: keep, find, fetch, remove.

use belljar_types::SandboxId;
use bytes::Bytes;
use futures_util::Stream;
use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::error::ClientError;

/// A file to keep.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct NewArtifact {
    /// Where it is in the sandbox.
    pub path: String,
    /// Who reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// What to call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// How long it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u64>,
}

/// A file that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactView {
    /// Its name for life.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// The sandbox it came from.
    pub sandbox: String,
    /// Where it was.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// The SHA-256 of its content.
    pub sha256: String,
    /// What its first bytes look like.
    pub media_type: String,
    /// When it was kept, RFC 3339.
    pub created_at: String,
    /// When it is removed.
    pub expires_at: Option<String>,
}

/// A page of artifacts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactPage {
    /// Its artifacts.
    pub artifacts: Vec<ArtifactView>,
    /// Where the next page begins; none if this was the last.
    pub next_cursor: Option<String>,
}

impl Client {
    /// Takes a file out of a sandbox and keeps it.
    pub async fn keep_file(&self, id: &SandboxId, request: &NewArtifact) -> Result<ArtifactView, ClientError> {
        self.ask(Method::POST, ["v1", "sandboxes", id.as_str(), "artifacts"]).json(request).fetch().await
    }

    /// One page of the project's artifacts, newest first.
    pub async fn artifacts(&self, sandbox: Option<&SandboxId>, cursor: Option<&str>) -> Result<ArtifactPage, ClientError> {
        let sandbox = sandbox.map(|id| ("sandbox", id.as_str()));
        let query: Vec<(&str, &str)> = sandbox.into_iter().chain(cursor.map(|cursor| ("cursor", cursor))).collect();
        self.ask(Method::GET, ["v1", "artifacts"]).query(&query).fetch().await
    }

    /// One artifact.
    pub async fn artifact(&self, id: &str) -> Result<ArtifactView, ClientError> {
        self.ask(Method::GET, ["v1", "artifacts", id]).fetch().await
    }

    /// An artifact's bytes, as they come.
    pub async fn artifact_content(&self, id: &str) -> Result<impl Stream<Item = Result<Bytes, ClientError>> + Send + 'static, ClientError> {
        Ok(self.ask(Method::GET, ["v1", "artifacts", id, "content"]).send().await?.pieces())
    }

    /// Removes an artifact.
    pub async fn remove_artifact(&self, id: &str) -> Result<(), ClientError> {
        self.ask(Method::DELETE, ["v1", "artifacts", id]).done().await
    }
}
