//! Sandboxes: make, find, change, measure, end.

use std::collections::BTreeMap;

use belljar_types::{GuestMetrics, PauseKind, SandboxId, SandboxState, Usage};
use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::error::ClientError;
use crate::volumes::VolumeMount;

/// Limits as asked for; what is unset is the server's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct AskedLimits {
    /// Thousandths of a core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u32>,
    /// Memory in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Bytes on disk beyond the template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// Processes and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids: Option<u32>,
    /// Life in wall time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_time_seconds: Option<u64>,
}

/// A sandbox to make; what is unset is the server's default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CreateSandbox {
    /// From what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// From which snapshot instead, by its id or name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// `auto` or a class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
    /// What it may use.
    pub limits: AskedLimits,
    /// `none` or `open`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// What it may do: the name of a profile, or a document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<serde_json::Value>,
    /// `root-allowed` or `user-only`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privilege: Option<String>,
    /// Environment of every process.
    pub env: BTreeMap<String, String>,
    /// The caller's own words about it.
    pub metadata: BTreeMap<String, String>,
    /// How long it lives from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_seconds: Option<u64>,
    /// How long nobody may use it before it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout_seconds: Option<u64>,
    /// `kill` or `pause`: what happens when its lease runs out or nobody uses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<String>,
    /// Whether using it while it is paused resumes it.
    pub auto_resume: bool,
    /// Storage that outlives it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<VolumeMount>,
    /// Its host name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
}

/// What to change; what is unset stays.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Change {
    /// Replaces all metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
    /// Replaces the idle time-out; the inner `None` removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout_seconds: Option<Option<u64>>,
    /// It ends so long from now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_seconds: Option<u64>,
    /// Replaces what it may do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<serde_json::Value>,
}

/// Limits as they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitsOf {
    /// Thousandths of a core.
    pub cpu_millis: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Bytes on disk beyond the template.
    pub disk_bytes: u64,
    /// Processes and threads.
    pub pids: u32,
    /// Life in wall time.
    pub wall_time_seconds: Option<u64>,
}

/// How a sandbox stands still.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Since when, RFC 3339.
    pub since: String,
    /// `on-disk`, `resident` or `lost`.
    pub memory: String,
}

/// Whom a sandbox is a copy of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The sandbox.
    pub sandbox: String,
    /// The snapshot, if it was made from one that somebody kept.
    pub snapshot: Option<String>,
}

/// How a sandbox ended or is ending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// `requested`, `lease-expired`, `idle` …
    pub cause: String,
    /// More about it, for people.
    pub detail: String,
    /// When, RFC 3339.
    pub at: String,
}

/// A sandbox as the server tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxView {
    /// Its name for life.
    pub id: SandboxId,
    /// Whose it is.
    pub project: String,
    /// Where it is in its life.
    pub state: SandboxState,
    /// What isolates it.
    pub isolation: String,
    /// Why this class, for people.
    pub isolation_reason: String,
    /// What it was made from.
    pub template: String,
    /// Which run of it this is.
    pub execution: String,
    /// What it may use.
    pub limits: LimitsOf,
    /// `none`, `open` or `filtered`.
    pub network: String,
    /// What it may do.
    #[serde(default)]
    pub policy: Option<serde_json::Value>,
    /// `root-allowed` or `user-only`.
    pub privilege: String,
    /// Names of its environment.
    pub env: Vec<String>,
    /// The caller's own words about it.
    pub metadata: BTreeMap<String, String>,
    /// Storage that outlives it.
    #[serde(default)]
    pub volumes: Vec<VolumeMount>,
    /// Its host name, if it is not its id.
    pub hostname: Option<String>,
    /// When it was asked for, RFC 3339.
    pub created_at: String,
    /// When its agent first answered.
    pub started_at: Option<String>,
    /// When its lease runs out.
    pub expires_at: Option<String>,
    /// How long nobody may use it before it ends.
    pub idle_timeout_seconds: Option<u64>,
    /// Its pause, while it stands still.
    pub pause: Option<Pause>,
    /// Whom it is a copy of.
    pub origin: Option<Origin>,
    /// How it ended or is ending.
    pub end: Option<End>,
}

/// Which sandboxes to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListSandboxes {
    /// Only these states; all when empty.
    pub states: Vec<SandboxState>,
    /// Only those with all of this metadata.
    pub metadata: Vec<(String, String)>,
    /// Only those made from this template.
    pub template: Option<String>,
    /// Oldest first instead of newest first.
    pub oldest_first: bool,
    /// At most this many on a page.
    pub limit: Option<u32>,
    /// Where the page before ended.
    pub cursor: Option<String>,
}

impl ListSandboxes {
    fn query(&self) -> Vec<(&'static str, String)> {
        let mut query = Vec::new();
        query.extend(self.states.iter().map(|state| ("state", state.to_string())));
        query.extend(self.metadata.iter().map(|(name, value)| ("metadata", format!("{name}:{value}"))));
        query.extend(self.template.iter().map(|template| ("template", template.clone())));
        query.extend(self.oldest_first.then(|| ("order", "oldest".to_owned())));
        query.extend(self.limit.iter().map(|limit| ("limit", limit.to_string())));
        query.extend(self.cursor.iter().map(|cursor| ("cursor", cursor.clone())));
        query
    }
}

/// A page of sandboxes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxPage {
    /// Its sandboxes.
    pub sandboxes: Vec<SandboxView>,
    /// Where the next page begins; none if this was the last.
    pub next_cursor: Option<String>,
}

impl Client {
    /// Makes a sandbox. The same idempotency key again answers with the same one.
    pub async fn create_sandbox(&self, request: &CreateSandbox, idempotency_key: Option<&str>) -> Result<SandboxView, ClientError> {
        let asking = self.ask(Method::POST, ["v1", "sandboxes"]).json(request);
        match idempotency_key {
            Some(key) => asking.header("idempotency-key", key).fetch().await,
            None => asking.fetch().await,
        }
    }

    /// One page of the project's sandboxes.
    pub async fn sandboxes(&self, which: &ListSandboxes) -> Result<SandboxPage, ClientError> {
        self.ask(Method::GET, ["v1", "sandboxes"]).query(&which.query()).fetch().await
    }

    /// One sandbox, ended or not.
    pub async fn sandbox(&self, id: &SandboxId) -> Result<SandboxView, ClientError> {
        self.ask(Method::GET, ["v1", "sandboxes", id.as_str()]).fetch().await
    }

    /// Changes a sandbox.
    pub async fn change_sandbox(&self, id: &SandboxId, change: &Change) -> Result<SandboxView, ClientError> {
        self.ask(Method::PATCH, ["v1", "sandboxes", id.as_str()]).json(change).fetch().await
    }

    /// Ends a sandbox and answers how it is then.
    pub async fn kill_sandbox(&self, id: &SandboxId) -> Result<SandboxView, ClientError> {
        self.ask(Method::DELETE, ["v1", "sandboxes", id.as_str()]).fetch().await
    }

    /// Sets how long a sandbox lives from now on; with `at_least`, never shorter than it would have.
    pub async fn set_lease(&self, id: &SandboxId, seconds: u64, at_least: bool) -> Result<SandboxView, ClientError> {
        #[derive(Serialize)]
        struct Lease {
            seconds: u64,
            at_least: bool,
        }
        self.ask(Method::POST, ["v1", "sandboxes", id.as_str(), "lease"]).json(&Lease { seconds, at_least }).fetch().await
    }

    /// Stops a sandbox where it stands.
    pub async fn pause_sandbox(&self, id: &SandboxId, kind: PauseKind) -> Result<SandboxView, ClientError> {
        #[derive(Serialize)]
        struct Keep {
            keep: &'static str,
        }
        let keep = match kind {
            PauseKind::Filesystem => "filesystem",
            PauseKind::Memory => "memory",
            PauseKind::Standby => "standby",
        };
        self.ask(Method::POST, ["v1", "sandboxes", id.as_str(), "pause"]).json(&Keep { keep }).fetch().await
    }

    /// Lets a paused sandbox go on.
    pub async fn resume_sandbox(&self, id: &SandboxId, lease_seconds: Option<u64>) -> Result<SandboxView, ClientError> {
        #[derive(Serialize)]
        struct Lease {
            #[serde(skip_serializing_if = "Option::is_none")]
            lease_seconds: Option<u64>,
        }
        self.ask(Method::POST, ["v1", "sandboxes", id.as_str(), "resume"]).json(&Lease { lease_seconds }).fetch().await
    }

    /// What a sandbox used, as the host counts it.
    pub async fn usage(&self, id: &SandboxId) -> Result<Usage, ClientError> {
        self.ask(Method::GET, ["v1", "sandboxes", id.as_str(), "usage"]).fetch().await
    }

    /// How a sandbox looks from inside.
    pub async fn guest_metrics(&self, id: &SandboxId) -> Result<GuestMetrics, ClientError> {
        self.ask(Method::GET, ["v1", "sandboxes", id.as_str(), "metrics"]).fetch().await
    }
}
