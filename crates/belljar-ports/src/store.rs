//! [`Store`]: what the service must remember. Its methods are verbs: each is one transaction, done wholly or not at all.
//!
//! ## What every store must hold to
//! * **Acknowledged is kept.** What a method returned `Ok` for survives `kill -9` of the server.
//! * **Fenced.** Every write carries the epoch of the server that makes it; after [`Store::begin_epoch`] all older ones get
//!   [`StoreError::Fenced`], and change nothing.
//! * **Compared.** A sandbox is written only by whoever knows its present state and execution ([`StoreError::Conflict`] otherwise).
//! * **One bad row is one bad row.** What cannot be read is reported with its id; everything else is still given.

use std::collections::BTreeMap;

use async_trait::async_trait;
use belljar_types::{
    ApiKey, Epoch, ExecutionId, KeyHash, KeyId, Project, ProjectId, Quota, Sandbox, SandboxId, SandboxState, SnapshotId, TemplateName,
    Timestamp, VolumeId, VolumeName,
};

use crate::artifact_store::ArtifactStore;
use crate::metering_store::MeteringStore;
use crate::snapshot_store::SnapshotStore;
use crate::volume_store::VolumeStore;
use crate::webhook_store::WebhookStore;

/// A request that is to have one effect, however often it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Once {
    /// The caller's key, unique within its project.
    pub key: String,
    /// A digest of what was asked: the same key with another request is refused.
    pub fingerprint: [u8; 32],
}

/// What [`Store::reserve`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reserved {
    /// The sandbox is in the store now.
    New,
    /// The same request came before; this is the sandbox it made.
    Before(Box<Sandbox>),
}

/// Which sandboxes to list. Everything unset lets all through.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxFilter {
    /// Only these states.
    pub states: Vec<SandboxState>,
    /// Only those with all of these.
    pub metadata: BTreeMap<String, String>,
    /// Only those made from this.
    pub template: Option<TemplateName>,
}

/// In which order to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Newest first.
    #[default]
    NewestFirst,
    /// Oldest first.
    OldestFirst,
}

/// Where a page ended: the next one starts after this sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// Its time of creation.
    pub created_at: Timestamp,
    /// Its id, for those made in the same millisecond.
    pub id: SandboxId,
}

/// Which page to give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// In which order.
    pub order: Order,
    /// After which sandbox; from the start when unset.
    pub after: Option<Cursor>,
    /// At most this many.
    pub limit: u32,
}

/// One page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its sandboxes.
    pub sandboxes: Vec<Sandbox>,
    /// Rows of it that cannot be read. They are left out above, and count towards the limit.
    pub unreadable: Vec<Unreadable>,
    /// Where the next page starts; `None` if this was the last.
    pub next: Option<Cursor>,
}

/// A row that cannot be read. It is left as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Its id, as far as it can be told.
    pub id: String,
    /// What is wrong with it, safe to print.
    pub detail: String,
}

/// Why something was not remembered or not found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another server has started on this store since.
    #[error("another server took over this store (epoch {current}); this one (epoch {ours}) must stop")]
    Fenced {
        /// Who writes now.
        current: u64,
        /// Who tried.
        ours: u64,
    },
    /// The sandbox is not as the writer believed.
    #[error("sandbox {id} is {found} in the store")]
    Conflict {
        /// Which.
        id: SandboxId,
        /// Its state in the store, or `absent`, or `another execution`.
        found: String,
    },
    /// The snapshot is not as the writer believed.
    #[error("snapshot {id} is {found} in the store")]
    SnapshotConflict {
        /// Which.
        id: SnapshotId,
        /// Its state in the store, or `absent`.
        found: String,
    },
    /// The volume is not as the writer believed.
    #[error("volume {id} is {found} in the store")]
    VolumeConflict {
        /// Which.
        id: VolumeId,
        /// Its state in the store, or `absent`.
        found: String,
    },
    /// Some sandbox has the volume in a way that this does not go with.
    #[error(
        "volume {name} is mounted {mode} by sandbox {holder}: end that sandbox first (several can have a volume only if each mounts it shared or read-only)"
    )]
    VolumeInUse {
        /// Which.
        name: VolumeName,
        /// Who has it.
        holder: SandboxId,
        /// How it has it.
        mode: String,
    },
    /// The volume never changes.
    #[error("volume {name} is read-only: mount it read-only, or clone it")]
    VolumeReadOnly {
        /// Which.
        name: VolumeName,
    },
    /// The name is taken.
    #[error("{what} {name} exists already")]
    Exists {
        /// What kind of thing.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// There is no such thing.
    #[error("there is no {what} {name}")]
    Absent {
        /// What kind of thing.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The project may not have more.
    #[error("project {project} may have {allowed} {resource} and would have {wanted}")]
    OverQuota {
        /// Whose quota.
        project: ProjectId,
        /// Of what: `sandboxes`, `cpu_millis`, `memory_bytes`, `disk_bytes`.
        resource: &'static str,
        /// How much it may have.
        allowed: u64,
        /// How much it would have.
        wanted: u64,
    },
    /// The key was used for another request.
    #[error("idempotency key {key:?} was used before for a different request")]
    KeyReused {
        /// The caller's key.
        key: String,
    },
    /// A row cannot be read.
    #[error("the store's row for {what} {id} cannot be read: {detail}")]
    Corrupt {
        /// What kind of thing.
        what: &'static str,
        /// Which.
        id: String,
        /// What is wrong, safe to print.
        detail: String,
    },
    /// There is no using this store at all: no such place, no database, or one that a newer version wrote.
    #[error("cannot open the store {location}")]
    Open {
        /// Where it was looked for, without any password.
        location: String,
        /// What is in the way.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The disk is full; nothing was changed.
    #[error("the store's disk is full: free some space, then try again")]
    Full,
    /// The database failed.
    #[error("{operation} in the store")]
    Database {
        /// What was being attempted.
        operation: &'static str,
        /// What the database said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// What the service remembers.
#[async_trait]
pub trait Store: SnapshotStore + VolumeStore + MeteringStore + ArtifactStore + WebhookStore {
    /// Starts a new epoch, higher than all before, and sums up anew what each project has.
    async fn begin_epoch(&self) -> Result<Epoch, StoreError>;

    /// Enters a new sandbox (state `creating`) if its project's quota has room; or finds the one that the same request made. One that
    /// ended as [`belljar_types::EndCause::NotMade`] was none: the request may have its effect now. The volumes of a new sandbox are its from then
    /// on, until its end is recorded; [`StoreError::VolumeInUse`] if one of them is another's.
    async fn reserve(&self, epoch: Epoch, sandbox: &Sandbox, once: Option<&Once>) -> Result<Reserved, StoreError>;

    /// The sandbox that the same request made before, if it did: for when there is no room to try [`Store::reserve`].
    async fn repeated(&self, project: &ProjectId, once: &Once) -> Result<Option<Sandbox>, StoreError>;

    /// Writes a sandbox that is in state `was` with execution `execution` in the store. One that has ended frees its quota.
    async fn record(&self, epoch: Epoch, was: SandboxState, execution: &ExecutionId, sandbox: &Sandbox) -> Result<(), StoreError>;

    /// A sandbox of a project, ended or not.
    async fn sandbox(&self, project: &ProjectId, id: &SandboxId) -> Result<Option<Sandbox>, StoreError>;

    /// A page of a project's sandboxes.
    async fn list(&self, project: &ProjectId, filter: &SandboxFilter, page: &PageRequest) -> Result<Page, StoreError>;

    /// Every sandbox that has not ended, of all projects; rows that cannot be read apart.
    async fn unended(&self) -> Result<(Vec<Sandbox>, Vec<Unreadable>), StoreError>;

    /// Forgets sandboxes that ended, and idempotency keys that were used, before `before`. Says how many sandboxes.
    async fn forget(&self, epoch: Epoch, before: Timestamp) -> Result<u64, StoreError>;

    /// Enters a project.
    async fn add_project(&self, project: &Project) -> Result<(), StoreError>;

    /// All projects, by name.
    async fn projects(&self) -> Result<Vec<Project>, StoreError>;

    /// One project.
    async fn project(&self, id: &ProjectId) -> Result<Option<Project>, StoreError>;

    /// Changes how much a project may have. What it has already stays.
    async fn set_quota(&self, id: &ProjectId, quota: &Quota) -> Result<(), StoreError>;

    /// Removes a project with its keys and the memory of its ended sandboxes; [`StoreError::Exists`] while it has live ones, snapshots or volumes.
    async fn remove_project(&self, id: &ProjectId) -> Result<(), StoreError>;

    /// Enters a key, of which only the hash of its secret is kept.
    async fn add_key(&self, key: &ApiKey, hash: &KeyHash) -> Result<(), StoreError>;

    /// The key whose secret has this hash.
    async fn key_by_hash(&self, hash: &KeyHash) -> Result<Option<ApiKey>, StoreError>;

    /// All keys of a project, or of all.
    async fn keys(&self, project: Option<&ProjectId>) -> Result<Vec<ApiKey>, StoreError>;

    /// Removes a key. From now on it is refused. Says whether there was one.
    async fn remove_key(&self, id: &KeyId) -> Result<bool, StoreError>;

    /// Answers if the store can be written to: for health checks.
    async fn check(&self) -> Result<(), StoreError>;

    /// Waits for what is under way and lets go of the database; every verb after it fails. Not needed for anything to be kept.
    async fn close(&self);
}
