//! [`Parcels`]: a snapshot as one stream of bytes, that can be carried to another server.
//!
//! Everything a sandbox needs is in it: layers, what was written over them, the memory image if there is one, and a manifest. Whoever reads
//! one trusts nothing in it: every part has a digest, names are resolved beneath their own directory, and what is not whole leaves nothing.

use std::io;

use async_trait::async_trait;
use belljar_types::{LayerDigest, Snapshot, SnapshotId};

use crate::blobs::BlobStream;

/// Why a snapshot was not packed or taken in. Nothing is left of what was begun.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParcelError {
    /// It is something else.
    #[error("this is no snapshot that `belljar snapshot export` wrote")]
    Foreign,
    /// It was written by a program that knows more.
    #[error("this snapshot is of format {found}, and this server reads up to {known}: use a newer server")]
    Newer {
        /// What it says.
        found: u32,
        /// What is understood.
        known: u32,
    },
    /// It ends before its end.
    #[error("this snapshot is cut short, in {part}: fetch it again")]
    CutShort {
        /// Where.
        part: String,
    },
    /// It is not what was written.
    #[error("this snapshot is damaged, in {part}: {reason}")]
    Damaged {
        /// Where.
        part: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Its memory cannot go on here.
    #[error("the memory of this snapshot cannot go on here: {reason}")]
    MemoryElsewhere {
        /// Why.
        reason: String,
    },
    /// Whoever sent it failed.
    #[error("read a snapshot that comes in")]
    Source(#[source] io::Error),
    /// This host's disk has no room for it.
    #[error("the host is out of disk space for the snapshot")]
    HostFull,
    /// This host failed.
    #[error("{operation}")]
    Storage {
        /// What was being attempted.
        operation: &'static str,
        /// What went wrong.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Who sent a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// A server, through a place that only servers write to.
    Server,
    /// Anybody.
    Stranger,
}

/// What of a snapshot is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// All that it needs.
    Everything,
    /// All but its layers, which are sent by themselves and once.
    WithoutLayers,
}

/// A snapshot that is coming in: its manifest was read, the rest was not.
#[async_trait]
pub trait Parcel: Send {
    /// What it says about itself. Nothing of it was checked but its form.
    fn snapshot(&self) -> &Snapshot;

    /// The layers it needs, lowest first.
    fn layers(&self) -> Vec<LayerDigest>;

    /// Takes in the rest, as a snapshot of this id, and says how many bytes it has. A memory image is refused unless it was taken with
    /// `engine`, a program and its version. From a stranger, layers that are here already must be sent in full all the same: knowing the name
    /// of somebody's layer is not having it. If it fails, nothing of the snapshot is left.
    async fn unpack(self: Box<Self>, id: &SnapshotId, engine: &str, sender: Sender) -> Result<u64, ParcelError>;
}

/// Packs and unpacks snapshots of this host.
#[async_trait]
pub trait Parcels: Send + Sync {
    /// A whole snapshot, as a stream, with which `engine` its memory was taken. If it fails half-way the stream ends with an error.
    async fn pack(&self, snapshot: &Snapshot, engine: &str, contents: Contents) -> Result<BlobStream, ParcelError>;

    /// The layers that a snapshot needs, lowest first.
    async fn layers(&self, id: &SnapshotId) -> Result<Vec<LayerDigest>, ParcelError>;

    /// Whether a layer is here.
    async fn has_layer(&self, digest: &LayerDigest) -> Result<bool, ParcelError>;

    /// One layer, as a stream.
    async fn pack_layer(&self, digest: &LayerDigest) -> Result<BlobStream, ParcelError>;

    /// Takes in a layer, if it is what its name says.
    async fn unpack_layer(&self, digest: &LayerDigest, content: BlobStream) -> Result<(), ParcelError>;

    /// Reads a manifest.
    async fn open(&self, content: BlobStream) -> Result<Box<dyn Parcel>, ParcelError>;
}
