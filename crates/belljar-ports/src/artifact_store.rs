//! [`ArtifactStore`]: what the service must remember of artifacts. Part of [`crate::Store`] and held to the same.

use async_trait::async_trait;
use belljar_types::{Artifact, ArtifactId, ArtifactState, Epoch, ProjectId, SandboxId, Timestamp};

use crate::store::StoreError;

/// Where a page ended: the next one starts after this artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactCursor {
    /// Its time of creation.
    pub created_at: Timestamp,
    /// Its id, for those made in the same millisecond.
    pub id: ArtifactId,
}

/// One page, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactPage {
    /// Its artifacts.
    pub artifacts: Vec<Artifact>,
    /// Where the next page starts; `None` if this was the last.
    pub next: Option<ArtifactCursor>,
}

/// What the service remembers of artifacts.
#[async_trait]
pub trait ArtifactStore: Send + Sync {
    /// Enters an artifact whose bytes are about to be put (state `keeping`), if its project's quota of disk has room for them beside its
    /// snapshots and other artifacts, and if its sandbox has fewer than `most` of them.
    async fn enter_artifact(&self, epoch: Epoch, artifact: &Artifact, most: u64) -> Result<(), StoreError>;

    /// Writes an artifact that is in state `was` in the store. One that is now `kept` must still fit its project's quota of disk.
    async fn record_artifact(&self, epoch: Epoch, was: ArtifactState, artifact: &Artifact) -> Result<(), StoreError>;

    /// Forgets an artifact of which no bytes are left. Does nothing if there is none.
    async fn forget_artifact(&self, epoch: Epoch, id: &ArtifactId) -> Result<(), StoreError>;

    /// A kept artifact of a project.
    async fn artifact(&self, project: &ProjectId, id: &ArtifactId) -> Result<Option<Artifact>, StoreError>;

    /// A page of a project's kept artifacts, newest first; of one sandbox if so asked.
    async fn list_artifacts(
        &self,
        project: &ProjectId,
        sandbox: Option<&SandboxId>,
        after: Option<&ArtifactCursor>,
        limit: u32,
    ) -> Result<ArtifactPage, StoreError>;

    /// Kept artifacts of all projects that expire before `before`, the first to expire first; at most `limit`.
    async fn expiring_artifacts(&self, before: Timestamp, limit: u32) -> Result<Vec<Artifact>, StoreError>;

    /// Ids of all that are neither kept nor gone, readable or not.
    async fn unfinished_artifacts(&self) -> Result<Vec<ArtifactId>, StoreError>;
}
