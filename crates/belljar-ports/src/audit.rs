//! [`Audit`]: where what happened is written down, so that nobody can unwrite it unnoticed.
//!
//! ## What every log must hold to
//! * **Acknowledged is kept.** What [`Audit::record`] returned `Ok` for survives `kill -9` of the server and a loss of power.
//! * **In order.** Events of a project have numbers without holes, in the order in which they were handed over.
//! * **Nothing is repaired in silence.** A log that is damaged is refused with what is wrong with it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use belljar_types::{AuditEvent, AuditRecord, ProjectId, SandboxId, Timestamp};

/// Which events to give.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditQuery {
    /// Those after this number.
    pub after: u64,
    /// Of one sandbox.
    pub sandbox: Option<SandboxId>,
    /// Of these kinds; all when empty.
    pub kinds: Vec<String>,
    /// Not before this.
    pub since: Option<Timestamp>,
    /// Before this.
    pub until: Option<Timestamp>,
    /// At most this many.
    pub limit: usize,
}

/// Some events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditPage {
    /// Each with the line as it stands in the log: what its hash is made of.
    pub records: Vec<(AuditRecord, String)>,
    /// Where to go on: everything up to this number was looked at.
    pub looked_until: u64,
    /// Whether there was more.
    pub more: bool,
}

/// The signed word of the server that its log ended so at that time.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Checkpoint {
    /// Whose log.
    pub project: ProjectId,
    /// The number of the last event; 0 for none.
    #[serde(rename = "seq")]
    pub sequence: u64,
    /// SHA-256 of that record, in hexadecimal.
    pub hash: String,
    /// When it was signed.
    pub at: Timestamp,
    /// The public key, in hexadecimal.
    pub public_key: String,
    /// Its Ed25519 signature over the rest, in hexadecimal.
    pub signature: String,
}

/// What a look through a whole log found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditVerdict {
    /// How many events are there.
    pub events: u64,
    /// The last word that was signed.
    pub checkpoint: Option<Checkpoint>,
    /// What is wrong, in the order of the log; nothing if it is whole.
    pub faults: Vec<String>,
}

/// Why something was not written down, or not found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// The disk did not take it.
    #[error("{operation} the audit log {path}")]
    Disk {
        /// What was being attempted.
        operation: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the disk said.
        #[source]
        source: std::io::Error,
    },
    /// The log is not as it was left. It is not written to any more.
    #[error("the audit log of project {project} is damaged: {detail}; `belljar audit verify` tells more, docs/guides/audit.md what to do")]
    Damaged {
        /// Whose.
        project: ProjectId,
        /// What is wrong, safe to print.
        detail: String,
    },
    /// The key that signs cannot be used.
    #[error("use the signing key {path}: {reason}")]
    Key {
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The event has no form in which it could be written.
    #[error("write an event as JSON")]
    Encode(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The log is closed.
    #[error("the audit log is closed")]
    Closed,
}

/// The log.
#[async_trait]
pub trait Audit: Send + Sync {
    /// Writes an event down and says its number. It is on the disk then.
    async fn record(&self, event: AuditEvent) -> Result<u64, AuditError>;

    /// Hands over an event that nobody waits for: how something ended whose intent was recorded. It comes after all that were handed over
    /// before; if the server is killed at once, it may be missing.
    async fn note(&self, event: AuditEvent) -> Result<(), AuditError>;

    /// Events of a project, oldest first.
    async fn read(&self, project: &ProjectId, query: &AuditQuery) -> Result<AuditPage, AuditError>;

    /// Waits until a project's log goes beyond a number, or for this long. Says how far it goes.
    async fn wait(&self, project: &ProjectId, beyond: u64, at_most: Duration) -> Result<u64, AuditError>;

    /// How far each project's log goes. Waits until one goes beyond what is known; with nothing known, it is what is on the disk.
    async fn ends(&self, known: &BTreeMap<ProjectId, u64>) -> Result<BTreeMap<ProjectId, u64>, AuditError>;

    /// The last signed word about a project's log; `None` if it has none.
    async fn checkpoint(&self, project: &ProjectId) -> Result<Option<Checkpoint>, AuditError>;

    /// Reads a project's whole log and says whether it is as it was written.
    async fn verify(&self, project: &ProjectId) -> Result<AuditVerdict, AuditError>;
}
