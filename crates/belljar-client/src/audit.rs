//! The audit log over the API, so that people and programs read what happened, and whether it is whole.

use bytes::Bytes;
use futures_util::Stream;
use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::error::ClientError;

/// Which events; what is unset lets all through.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct AuditAsk {
    /// Whose log; the key's own project when unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Those after this number.
    pub after: u64,
    /// Instead of `after`: this many before the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<u32>,
    /// Only of this sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// Only of these kinds, with commas between.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kinds: Option<String>,
    /// Not before this moment, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Before this moment, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// At most this many.
    pub limit: u32,
    /// If there is none, wait for one for so many seconds.
    pub wait_seconds: u32,
}

/// Some events.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct AuditEvents {
    /// Oldest first, as they stand in the log.
    pub events: Vec<serde_json::Value>,
    /// Give it as `after` to go on.
    pub next_after: u64,
    /// Whether there is more already.
    pub more: bool,
}

/// Whether a log is as it was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditVerdict {
    /// Whether it is.
    pub whole: bool,
    /// How many events are there.
    pub events: u64,
    /// What is wrong.
    pub faults: Vec<String>,
    /// The last signed word about it.
    pub checkpoint: Option<serde_json::Value>,
}

impl Client {
    /// Reads events.
    pub async fn audit(&self, ask: &AuditAsk) -> Result<AuditEvents, ClientError> {
        self.ask(Method::GET, ["v1", "audit"]).query(ask).fetch().await
    }

    /// Has the server check a log.
    pub async fn verify_audit(&self, project: Option<&str>) -> Result<AuditVerdict, ClientError> {
        self.ask(Method::GET, ["v1", "audit", "verify"]).query(&of(project)).fetch().await
    }

    /// A log's lines and its checkpoint, as they come.
    pub async fn export_audit(
        &self,
        project: Option<&str>,
    ) -> Result<impl Stream<Item = Result<Bytes, ClientError>> + Send + 'static, ClientError> {
        Ok(self.ask(Method::GET, ["v1", "audit", "export"]).query(&of(project)).send().await?.pieces())
    }
}

fn of(project: Option<&str>) -> Vec<(&'static str, &str)> {
    project.map(|project| ("project", project)).into_iter().collect()
}
