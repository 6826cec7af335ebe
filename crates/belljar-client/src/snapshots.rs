//! Snapshots: take, find, remove; forks, roll-backs, trees.

use std::collections::BTreeMap;

use belljar_types::SandboxId;
use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::error::ClientError;
use crate::sandboxes::{LimitsOf, SandboxView};

/// A snapshot to take; what is unset is the server's default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct NewSnapshot {
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `memory` or `filesystem`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// How long it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u64>,
}

/// A snapshot as the server tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotView {
    /// Its name for life.
    pub id: String,
    /// What people call it.
    pub name: Option<String>,
    /// Whose it is.
    pub project: String,
    /// `memory` or `filesystem`.
    pub kind: String,
    /// What isolates what is made from it.
    pub isolation: String,
    /// The sandbox it was taken of.
    pub sandbox: String,
    /// The snapshot before.
    pub parent: Option<String>,
    /// What its sandbox was first made from.
    pub template: String,
    /// What its sandbox may use.
    pub limits: LimitsOf,
    /// Its bytes.
    pub bytes: u64,
    /// How long its sandbox stood still.
    pub stood_still_micros: u64,
    /// When it was asked for, RFC 3339.
    pub created_at: String,
    /// When it is removed.
    pub expires_at: Option<String>,
}

/// Which snapshots to list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ListSnapshots {
    /// Only those taken of this sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxId>,
    /// Only those with this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// At most this many on a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Where the page before ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// A page of snapshots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotPage {
    /// Its snapshots.
    pub snapshots: Vec<SnapshotView>,
    /// Where the next page begins; none if this was the last.
    pub next_cursor: Option<String>,
}

/// Forks to make.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct NewForks {
    /// How many.
    pub count: u32,
    /// All or none.
    pub all_or_nothing: bool,
    /// Environment over that of their origin.
    pub env: BTreeMap<String, String>,
    /// Replaces all metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
    /// How long each lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_seconds: Option<u64>,
}

/// Why one fork was not made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkError {
    /// Stable.
    pub code: String,
    /// For people.
    pub detail: String,
}

/// What came of one fork.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fork {
    /// The sandbox.
    pub sandbox: Option<SandboxView>,
    /// Why there is none.
    pub error: Option<ForkError>,
}

#[derive(Deserialize)]
struct Forks {
    forks: Vec<Fork>,
}

/// Everything that came from one sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// The sandbox that it began with.
    pub root: String,
    /// Sandboxes, oldest first.
    pub sandboxes: Vec<SandboxView>,
    /// Snapshots, oldest first.
    pub snapshots: Vec<SnapshotView>,
}

impl Client {
    /// Keeps the state of a sandbox.
    pub async fn take_snapshot(&self, id: &SandboxId, request: &NewSnapshot) -> Result<SnapshotView, ClientError> {
        self.ask(Method::POST, ["v1", "sandboxes", id.as_str(), "snapshots"]).json(request).fetch().await
    }

    /// One page of the project's snapshots.
    pub async fn snapshots(&self, which: &ListSnapshots) -> Result<SnapshotPage, ClientError> {
        self.ask(Method::GET, ["v1", "snapshots"]).query(which).fetch().await
    }

    /// One snapshot, by its id or name.
    pub async fn snapshot(&self, which: &str) -> Result<SnapshotView, ClientError> {
        self.ask(Method::GET, ["v1", "snapshots", which]).fetch().await
    }

    /// Removes a snapshot.
    pub async fn remove_snapshot(&self, which: &str) -> Result<(), ClientError> {
        self.ask(Method::DELETE, ["v1", "snapshots", which]).done().await
    }

    /// Makes copies of a sandbox.
    pub async fn fork_sandbox(&self, id: &SandboxId, request: &NewForks) -> Result<Vec<Fork>, ClientError> {
        let forks: Forks = self.ask(Method::POST, ["v1", "sandboxes", id.as_str(), "forks"]).json(request).fetch().await?;
        Ok(forks.forks)
    }

    /// Makes sandboxes from a snapshot.
    pub async fn fork_snapshot(&self, which: &str, request: &NewForks) -> Result<Vec<Fork>, ClientError> {
        let forks: Forks = self.ask(Method::POST, ["v1", "snapshots", which, "forks"]).json(request).fetch().await?;
        Ok(forks.forks)
    }

    /// Puts a sandbox back to one of its snapshots.
    pub async fn roll_back(&self, id: &SandboxId, snapshot: &str) -> Result<SandboxView, ClientError> {
        #[derive(Serialize)]
        struct To<'a> {
            snapshot: &'a str,
        }
        self.ask(Method::POST, ["v1", "sandboxes", id.as_str(), "rollback"]).json(&To { snapshot }).fetch().await
    }

    /// Everything that is related to a sandbox.
    pub async fn tree(&self, id: &SandboxId) -> Result<Tree, ClientError> {
        self.ask(Method::GET, ["v1", "sandboxes", id.as_str(), "tree"]).fetch().await
    }
}
