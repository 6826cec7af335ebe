//! [`SnapshotStore`]: what the service must remember of snapshots, and of who came from whom. Part of [`crate::Store`] and held to the same.
//!
//! A snapshot is entered before the engine acts (`making`) and shown only when it is whole; one that is being removed is not shown any more
//! and is remembered until nothing is left of it.

use async_trait::async_trait;
use belljar_types::{Epoch, ProjectId, Sandbox, SandboxId, Snapshot, SnapshotId, SnapshotName, SnapshotState, Timestamp};

use crate::store::{StoreError, Unreadable};

/// Which snapshots to list. Everything unset lets all through.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SnapshotFilter {
    /// Only those taken of this sandbox.
    pub source: Option<SandboxId>,
    /// Only those called this.
    pub name: Option<SnapshotName>,
}

/// Where a page ended: the next one starts after this snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotCursor {
    /// Its time of creation.
    pub created_at: Timestamp,
    /// Its id, for those made in the same millisecond.
    pub id: SnapshotId,
}

/// One page, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotPage {
    /// Its snapshots.
    pub snapshots: Vec<Snapshot>,
    /// Rows of it that cannot be read. They are left out above, and count towards the limit.
    pub unreadable: Vec<Unreadable>,
    /// Where the next page starts; `None` if this was the last.
    pub next: Option<SnapshotCursor>,
}

/// Everything that came from one sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Family {
    /// Sandboxes, oldest first; ended ones too, as long as they are remembered.
    pub sandboxes: Vec<Sandbox>,
    /// Whole snapshots, oldest first.
    pub snapshots: Vec<Snapshot>,
}

/// What the service remembers of snapshots.
#[async_trait]
pub trait SnapshotStore: Send + Sync {
    /// Enters a snapshot that is about to be taken (state `making`). One that is to be kept needs room in its project's quota of disk,
    /// where snapshots count with what they turned out to have.
    async fn enter_snapshot(&self, epoch: Epoch, snapshot: &Snapshot) -> Result<(), StoreError>;

    /// Writes a snapshot that is in state `was` in the store.
    async fn record_snapshot(&self, epoch: Epoch, was: SnapshotState, snapshot: &Snapshot) -> Result<(), StoreError>;

    /// Forgets a snapshot of which nothing is left. Does nothing if there is none.
    async fn forget_snapshot(&self, epoch: Epoch, id: &SnapshotId) -> Result<(), StoreError>;

    /// A whole snapshot of a project.
    async fn snapshot(&self, project: &ProjectId, id: &SnapshotId) -> Result<Option<Snapshot>, StoreError>;

    /// The newest whole snapshot of a project with this name.
    async fn snapshot_named(&self, project: &ProjectId, name: &SnapshotName) -> Result<Option<Snapshot>, StoreError>;

    /// A page of a project's whole snapshots, newest first.
    async fn list_snapshots(
        &self,
        project: &ProjectId,
        filter: &SnapshotFilter,
        after: Option<&SnapshotCursor>,
        limit: u32,
    ) -> Result<SnapshotPage, StoreError>;

    /// Every snapshot of all projects, in every state; rows that cannot be read apart.
    async fn all_snapshots(&self) -> Result<(Vec<Snapshot>, Vec<Unreadable>), StoreError>;

    /// Whole snapshots of all projects that expire before `before`, the first to expire first; at most `limit`.
    async fn expiring_snapshots(&self, before: Timestamp, limit: u32) -> Result<Vec<Snapshot>, StoreError>;

    /// Everything of a project that came from this sandbox, and the sandbox itself; at most `limit` of each kind.
    async fn family(&self, project: &ProjectId, root: &SandboxId, limit: u32) -> Result<Family, StoreError>;
}
