//! [`VolumeStore`]: what the service must remember of volumes, and of who has them. Part of [`crate::Store`] and held to the same.
//!
//! A volume is entered before anything is made (`making`) and shown only when it is ready. Who has it mounted is written in the same transaction
//! as the sandbox itself ([`crate::Store::reserve`]) and given back in that of its end, so that two sandboxes that want a volume for themselves
//! cannot both get it, whatever dies when. A paused sandbox keeps what it has.

use async_trait::async_trait;
use belljar_types::{Epoch, MountMode, ProjectId, SandboxId, Volume, VolumeId, VolumeName, VolumeState};

use crate::store::{StoreError, Unreadable};

/// A sandbox that has a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Which.
    pub sandbox: SandboxId,
    /// How it uses it.
    pub mode: MountMode,
}

/// One page, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VolumePage {
    /// Its volumes.
    pub volumes: Vec<Volume>,
    /// Rows of it that cannot be read. They are left out above, and count towards the limit.
    pub unreadable: Vec<Unreadable>,
    /// After which name the next page starts; `None` if this was the last.
    pub next: Option<VolumeName>,
}

/// What the service remembers of volumes.
#[async_trait]
pub trait VolumeStore: Send + Sync {
    /// Enters a volume that is about to be made (state `making`). Its size needs room in its project's quota of disk.
    async fn enter_volume(&self, epoch: Epoch, volume: &Volume) -> Result<(), StoreError>;

    /// Writes a volume that is in state `was` in the store. One that some sandbox has cannot become `removing`: [`StoreError::VolumeInUse`].
    async fn record_volume(&self, epoch: Epoch, was: VolumeState, volume: &Volume) -> Result<(), StoreError>;

    /// Forgets a volume of which nothing is left. Does nothing if there is none.
    async fn forget_volume(&self, epoch: Epoch, id: &VolumeId) -> Result<(), StoreError>;

    /// A ready volume of a project.
    async fn volume(&self, project: &ProjectId, id: &VolumeId) -> Result<Option<Volume>, StoreError>;

    /// The ready volume of a project with this name.
    async fn volume_named(&self, project: &ProjectId, name: &VolumeName) -> Result<Option<Volume>, StoreError>;

    /// A page of a project's ready volumes, by name.
    async fn list_volumes(&self, project: &ProjectId, after: Option<&VolumeName>, limit: u32) -> Result<VolumePage, StoreError>;

    /// Every volume of all projects, in every state; rows that cannot be read apart.
    async fn all_volumes(&self) -> Result<(Vec<Volume>, Vec<Unreadable>), StoreError>;

    /// The sandboxes that have a volume, at most `limit`.
    async fn holders(&self, id: &VolumeId, limit: u32) -> Result<Vec<Holder>, StoreError>;
}
