//! A snapshot as the service knows it: what was kept of which sandbox, under what name and for how long; and what it says about whom a
//! sandbox came from.
//!
//! ```text
//!   making ──► whole ──► removing ──► (forgotten)
//!      ├──────────────────▲   one that was only made to fork from is never whole: nobody sees it
//!      └──► warm ─────────┘   what a template's sandboxes begin with: nobody sees it either
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::{IsolationClass, OnTimeout, ProjectId, SandboxId, SandboxSpec, SnapshotId, SnapshotName, TemplateName, Timestamp};

/// What a snapshot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SnapshotKind {
    /// Files only; a sandbox made from it boots anew.
    Filesystem,
    /// Files and memory; a sandbox made from it goes on.
    Memory,
}

impl SnapshotKind {
    /// The word used in requests and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Filesystem => "filesystem",
            Self::Memory => "memory",
        }
    }
}

/// Where a snapshot is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SnapshotState {
    /// Being taken: nobody sees it.
    Making,
    /// All of it is on disk.
    Whole,
    /// Kept by the server, for a template's new sandboxes to begin with.
    Warm,
    /// Being removed: nobody sees it any more.
    Removing,
}

impl SnapshotState {
    /// The word used in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Making => "making",
            Self::Whole => "whole",
            Self::Warm => "warm",
            Self::Removing => "removing",
        }
    }
}

impl fmt::Display for SnapshotState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a snapshot is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SnapshotPurpose {
    /// Somebody asked for it.
    #[default]
    Kept,
    /// Forks are made from it, each for itself, and it goes when they are.
    Fork,
    /// The same, and either all of them are made or none: while it is there, they are not yet.
    ForkTogether,
    /// A template's sandboxes begin with it.
    Warm,
}

/// A snapshot, as stored.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Snapshot {
    /// Its name for life.
    pub id: SnapshotId,
    /// Whose it is.
    pub project: ProjectId,
    /// What people call it. A name that was given again means the newest that has it.
    pub name: Option<SnapshotName>,
    /// Where it is in its life.
    pub state: SnapshotState,
    /// What it is for.
    #[serde(default)]
    pub purpose: SnapshotPurpose,
    /// What it holds.
    pub kind: SnapshotKind,
    /// The engine that took it.
    pub class: IsolationClass,
    /// The sandbox it was taken of, which may be gone.
    pub source: SandboxId,
    /// The snapshot that its sandbox had last taken, was rolled back to, or began with.
    pub parent: Option<SnapshotId>,
    /// The sandbox that everything it is related to began with.
    pub root: SandboxId,
    /// What its sandbox was first made from.
    pub template: TemplateName,
    /// What its sandbox was made as: what a fork of it is made as, too.
    pub spec: SandboxSpec,
    /// Its sandbox's metadata.
    pub metadata: BTreeMap<String, String>,
    /// How long nobody may use a fork of it.
    pub idle_timeout: Option<Duration>,
    /// What happens to a fork whose time runs out.
    pub on_timeout: OnTimeout,
    /// Whether using a fork while it is paused resumes it.
    pub auto_resume: bool,
    /// What it has on disk, as far as that is its own.
    pub bytes: u64,
    /// How long its sandbox stood still for it.
    pub stood_still: Duration,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it is removed; never when unset.
    pub expires_at: Option<Timestamp>,
}

/// Whom a sandbox came from.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Origin {
    /// The sandbox it is a copy of, which may be gone.
    pub sandbox: SandboxId,
    /// The snapshot it was made from, if it was one that somebody kept.
    pub snapshot: Option<SnapshotId>,
    /// The sandbox that everything it is related to began with.
    pub root: SandboxId,
}

/// What a sandbox begins with on its host.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Beginning {
    /// The engine's snapshot.
    pub snapshot: SnapshotId,
    /// Whether that has its processes too.
    pub memory: bool,
    /// The fork it is one of, where all are made or none.
    pub together: Option<SnapshotId>,
}
