//! [`Volumes`]: the places on a host where volumes are, and their content without a sandbox.
//!
//! ## What every implementation must hold to
//! * **There or not there.** A volume is made wholly or not at all, whatever dies meanwhile; what is half made is gone when the host is next opened.
//! * **Bounded.** Nobody, root in a sandbox included, writes more than its size.
//! * **Its content is hostile.** Sandboxes put links, pipes and devices where they like. Nothing in a volume leads out of it, is waited for, or is run.
//! * **Constant memory**, whatever the size of a file.

use std::pin::Pin;

use async_trait::async_trait;
use belljar_types::{ByteRange, EntryChange, Invalid, ProjectId, VolumeEntry, VolumeId, VolumePath, VolumeWrite};
use bytes::Bytes;
use futures_core::Stream;

/// A file's bytes, in pieces, in order.
pub type ContentStream = Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>;

/// A file of a volume that is being read.
pub struct VolumeFile {
    /// What it is.
    pub entry: VolumeEntry,
    /// The bytes asked for.
    pub content: ContentStream,
}

/// Why something was not done with a volume or its content.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VolumeError {
    /// The request is wrong; nothing was changed.
    #[error("refused the request")]
    Invalid(#[from] Invalid),
    /// There is no such volume on this host.
    #[error("volume {id} is not here")]
    Absent {
        /// The id asked for.
        id: VolumeId,
    },
    /// There is nothing at this path.
    #[error("there is no {path} in volume {id}")]
    NoEntry {
        /// Which volume.
        id: VolumeId,
        /// The path asked for.
        path: VolumePath,
    },
    /// Something is there already.
    #[error("{path} exists in volume {id}")]
    EntryExists {
        /// Which volume.
        id: VolumeId,
        /// The path asked for.
        path: VolumePath,
    },
    /// What is there is of another kind, or is reached through a link.
    #[error("{path} in volume {id} is {found}")]
    WrongKind {
        /// Which volume.
        id: VolumeId,
        /// The path asked for.
        path: VolumePath,
        /// What is in the way, and what to do.
        found: &'static str,
    },
    /// No more fits.
    #[error("volume {id} is full: remove something from it, or make a larger one")]
    Full {
        /// Which volume.
        id: VolumeId,
    },
    /// The disk that all volumes and sandboxes share has no room, whatever the volume's own size.
    #[error("the host is out of disk space for volume {id}")]
    HostFull {
        /// Which volume.
        id: VolumeId,
    },
    /// It never changes.
    #[error("volume {id} is read-only: clone it to have one that can be written")]
    ReadOnly {
        /// Which volume.
        id: VolumeId,
    },
    /// Whoever sent the content stopped half way; nothing was changed.
    #[error("receive the content of {path} for volume {id}")]
    Upload {
        /// Which volume.
        id: VolumeId,
        /// Where it was to go.
        path: VolumePath,
        /// Why it ended.
        #[source]
        source: std::io::Error,
    },
    /// The host's disk failed.
    #[error("{operation} volume {id}")]
    Storage {
        /// What was being attempted.
        operation: &'static str,
        /// Which volume.
        id: VolumeId,
        /// What went wrong.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The volumes of the host could not be looked at.
    #[error("look for the volumes of this host")]
    Inventory(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The volumes of a host.
#[async_trait]
pub trait Volumes: Send + Sync {
    /// Makes an empty volume, or takes the one that is there.
    async fn make(&self, id: &VolumeId, size_bytes: u64) -> Result<(), VolumeError>;

    /// Makes a volume that is a bucket which the operator set up for this project, or takes the one that is there.
    async fn make_bucket(&self, id: &VolumeId, bucket: &str, project: &ProjectId) -> Result<(), VolumeError>;

    /// Makes a volume that holds what another holds now, in constant time; or takes the one that is there.
    async fn copy(&self, source: &VolumeId, id: &VolumeId, size_bytes: u64, read_only: bool) -> Result<(), VolumeError>;

    /// Removes a volume with all it holds. Does nothing, successfully, if there is none. No sandbox may have it.
    async fn remove(&self, id: &VolumeId) -> Result<(), VolumeError>;

    /// All volumes on this host that are whole.
    async fn inventory(&self) -> Result<Vec<VolumeId>, VolumeError>;

    /// Bytes that were written to a volume.
    async fn usage(&self, id: &VolumeId) -> Result<u64, VolumeError>;

    /// What is at a path.
    async fn stat(&self, id: &VolumeId, path: &VolumePath) -> Result<VolumeEntry, VolumeError>;

    /// What is in a directory, by name: its own entries at depth 1. At most `limit` of them.
    async fn list(&self, id: &VolumeId, path: &VolumePath, depth: u32, limit: u32) -> Result<Vec<VolumeEntry>, VolumeError>;

    /// A file's content.
    async fn read(&self, id: &VolumeId, path: &VolumePath, range: ByteRange) -> Result<VolumeFile, VolumeError>;

    /// Writes a file, wholly or not at all: until all of it is there, whoever looks sees what was there before.
    async fn write(
        &self,
        id: &VolumeId,
        path: &VolumePath,
        options: VolumeWrite,
        content: ContentStream,
    ) -> Result<VolumeEntry, VolumeError>;

    /// Makes a directory; with `parents` also those above it, and one that is there is taken.
    async fn make_directory(
        &self,
        id: &VolumeId,
        path: &VolumePath,
        change: EntryChange,
        parents: bool,
    ) -> Result<VolumeEntry, VolumeError>;

    /// Changes owner and permissions of a file or directory.
    async fn change(&self, id: &VolumeId, path: &VolumePath, change: EntryChange) -> Result<VolumeEntry, VolumeError>;

    /// Removes a file, or a directory with all in it.
    async fn remove_entry(&self, id: &VolumeId, path: &VolumePath) -> Result<(), VolumeError>;

    /// Moves something to another path of the same volume, replacing a file that is there.
    async fn rename(&self, id: &VolumeId, from: &VolumePath, to: &VolumePath) -> Result<VolumeEntry, VolumeError>;
}
