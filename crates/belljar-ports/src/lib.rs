//! The contracts that core asks of its adapters, and nothing else.
//!
//! ```text
//!        core                       knows only these traits
//!     ────┼──────────────
//!      Runtime ── makes, finds, freezes and removes sandboxes          (one per engine)
//!      Guest   ── acts inside one running sandbox                      (one per agent connection)
//!      Store   ── remembers sandboxes, snapshots, volumes, projects, keys  (SQLite or PostgreSQL)
//!      Templates ─ root filesystems by name                            (the host's layer store)
//!      Blobs   ── bytes that outlive sandboxes                         (a directory, or S3)
//!      Volumes ─── storage that outlives sandboxes, and its content    (the host's pool)
//!      Parcels ── snapshots as streams of bytes                         (the host and its layers)
//!      Capacity ── how much room the host has
//!      Audit   ── what happened, so that it cannot be unwritten        (files in the data directory)
//!      Tallies ─── what was counted a moment ago                       (a file in the data directory)
//!      Tapes ───── what terminals showed                                (files in the data directory)
//!      Courier ─── what is told to whom outside                        (webhooks)
//!      Egress ──── what leaves a sandbox                               (the gateway)
//! ```
//!
//! An ability that an engine lacks is an answer of [`Capabilities`], given before any work starts, and
//! [`RuntimeError::Unsupported`] if it is asked for all the same; never a half-done attempt.

mod artifact_store;
mod audit;
mod blobs;
mod capabilities;
mod capacity;
mod courier;
mod egress;
mod guest;
mod metering_store;
mod parcels;
mod runtime;
mod secrets;
mod snapshot_store;
mod store;
mod tallies;
mod tapes;
mod templates;
mod volume_store;
mod volumes;
mod webhook_store;

pub use artifact_store::{ArtifactCursor, ArtifactPage, ArtifactStore};
pub use audit::{Audit, AuditError, AuditPage, AuditQuery, AuditVerdict, Checkpoint};
pub use belljar_types::SnapshotKind;
pub use blobs::{BlobError, BlobHead, BlobKey, BlobList, BlobStream, Blobs, Put, Wanted};
pub use capabilities::{Capabilities, MemoryState, OomScope};
pub use capacity::{Capacity, Room};
pub use courier::{Courier, NotDelivered};
pub use egress::{Attached, Egress, EgressAbilities, EgressError, EgressEvent, EgressEventKind, Toll};
pub use guest::{
    ByteStream, EventStream, FileContent, Guest, GuestConnection, GuestError, GuestInfo, GuestReader, GuestWriter, OutputStream,
    SearchStream, WishStream,
};
pub use metering_store::MeteringStore;
pub use parcels::{Contents, Parcel, ParcelError, Parcels, Sender};
pub use runtime::{Found, Presence, Runtime, RuntimeError, SnapshotRecord};
pub use secrets::{Before, SecretInfo, Secrets, SecretsError};
pub use snapshot_store::{Family, SnapshotCursor, SnapshotFilter, SnapshotPage, SnapshotStore};
pub use store::{Cursor, Once, Order, Page, PageRequest, Reserved, SandboxFilter, Store, StoreError, Unreadable};
pub use tallies::Tallies;
pub use tapes::{KeptTapes, TapeInfo, TapeName, Tapes};
pub use templates::{BuildLine, FileStream, OwnedTemplate, StepKey, Swept, TemplateError, TemplateSource, Templates};
pub use volume_store::{Holder, VolumePage, VolumeStore};
pub use volumes::{ContentStream, VolumeError, VolumeFile, Volumes};
pub use webhook_store::WebhookStore;
