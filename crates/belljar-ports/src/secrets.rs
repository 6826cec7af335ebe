//! [`Secrets`]: where the credentials of projects are kept. Values go in and never come out here; only whoever adds them to requests, outside every
//! sandbox, can open them.

use std::collections::BTreeMap;
use std::io;

use belljar_types::{Invalid, ProjectId, Secret, Timestamp};

/// What is told about a secret: everything but its value.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SecretInfo {
    /// Its name for life.
    pub id: String,
    /// Its name in the project.
    pub name: String,
    /// How many values it has had.
    pub version: u64,
    /// Its owner's words about it.
    pub metadata: BTreeMap<String, String>,
    /// When it was first kept.
    pub created_at: Timestamp,
    /// When its value last changed.
    pub updated_at: Timestamp,
}

/// What may be there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// Nothing: it must be new.
    Nothing,
    /// An older value: it must be there.
    Older,
    /// Either.
    Either,
}

/// Why a secret was not kept, found or forgotten.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretsError {
    /// It cannot be one.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// There is one of that name.
    #[error("there is a secret {name} already")]
    Exists {
        /// Which.
        name: String,
    },
    /// There is none.
    #[error("there is no secret {name}")]
    Missing {
        /// Which, safe to print.
        name: String,
    },
    /// The disk did not do it.
    #[error("{operation} the secrets of project {project}")]
    Disk {
        /// What was being attempted.
        operation: &'static str,
        /// Whose.
        project: ProjectId,
        /// What the disk said.
        #[source]
        source: io::Error,
    },
}

/// The secrets of all projects. Methods touch small files only, and may block for that long.
pub trait Secrets: Send + Sync {
    /// Keeps a value. Metadata that is unset stays.
    fn put(
        &self,
        project: &ProjectId,
        name: &str,
        value: &Secret<String>,
        metadata: Option<BTreeMap<String, String>>,
        before: Before,
    ) -> Result<SecretInfo, SecretsError>;

    /// All of a project, by name.
    fn all(&self, project: &ProjectId) -> Result<Vec<SecretInfo>, SecretsError>;

    /// The values of a project, to be taken out of what is handed on.
    fn values(&self, project: &ProjectId) -> Result<Vec<Secret<String>>, SecretsError>;

    /// Forgets one.
    fn remove(&self, project: &ProjectId, name: &str) -> Result<(), SecretsError>;

    /// Forgets all of a project.
    fn forget(&self, project: &ProjectId) -> Result<(), SecretsError>;
}
