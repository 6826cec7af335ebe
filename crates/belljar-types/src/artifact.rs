//! An artifact: a file that was taken out of a sandbox on purpose, and outlives it.

use crate::{ArtifactId, ProjectId, SandboxId, Timestamp};

/// How far an artifact has come. Only one that is kept is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ArtifactState {
    /// Its bytes are on their way.
    Keeping,
    /// It is there.
    Kept,
    /// Its bytes are being removed.
    Removing,
}

impl ArtifactState {
    /// As it is written in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keeping => "keeping",
            Self::Kept => "kept",
            Self::Removing => "removing",
        }
    }
}

/// An artifact, as stored.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Artifact {
    /// Its name for life.
    pub id: ArtifactId,
    /// Whose it is.
    pub project: ProjectId,
    /// How far it has come.
    pub state: ArtifactState,
    /// The sandbox it came from, which may be gone.
    pub sandbox: SandboxId,
    /// What it is called, safe to print and fit for a file name.
    pub name: String,
    /// Where it was, safe to print.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// The SHA-256 of its content, in hexadecimal.
    pub sha256: String,
    /// What its first bytes look like.
    pub media_type: String,
    /// When it was taken.
    pub created_at: Timestamp,
    /// When it is removed; never when unset.
    pub expires_at: Option<Timestamp>,
}
