//! What a sandbox service decides, knowing no engine and no vendor.
//!
//! [`Service`] is the waist of the hourglass: every front asks it for the same few verbs, and it asks engines, store and templates through
//! their traits. One task owns each sandbox (`owner`), and a server that comes back after any end brings store and host together again
//! (`recovery`). What a caller may is in `caller` and `projects`, what the host can hold in `admission`.

mod activity;
mod admission;
mod artifacts;
mod asking;
mod boundary;
mod budgets;
mod building;
mod caller;
mod carrying;
mod changes;
mod changing;
mod config;
mod creating;
mod doctor;
mod ending;
mod error;
mod expiry;
mod forking;
mod keeping;
mod media_type;
mod metering;
mod outgoing;
mod owner;
mod pausing;
mod placement;
mod policies;
mod projects;
mod recorded;
mod recording;
mod recovery;
mod repeating;
mod request;
mod secrets;
mod service;
mod session;
mod settling;
mod shared;
mod snapshot_recovery;
mod snapshots;
mod starting;
mod statistics;
mod sweeping;
mod taping;
mod telling;
mod templates;
mod trust;
mod volume_content;
mod volume_recovery;
mod volumes;
mod warming;
mod webhooks;
mod wishes;

pub use artifacts::KeepFile;
pub use asking::in_the_name_of;
pub use belljar_policy as policy;
pub use belljar_ports::{
    ArtifactCursor, ArtifactPage, AuditError, AuditPage, AuditQuery, AuditVerdict, BlobError, BlobStream, BuildLine, ByteStream,
    Capabilities, Checkpoint, ContentStream, Cursor, EventStream, Family, FileContent, FileStream, Guest, GuestConnection, GuestError,
    GuestReader, GuestWriter, Holder, Order, OutputStream, OwnedTemplate, Page, PageRequest, ParcelError, RuntimeError, SandboxFilter,
    SearchStream, SecretInfo, SnapshotCursor, SnapshotFilter, SnapshotKind, SnapshotPage, StoreError, TapeInfo, TemplateError,
    TemplateSource, VolumeError, VolumeFile, VolumePage,
};
pub use building::{BuildBase, BuildPlan, BuildView, PlannedStep};
pub use caller::{Caller, Denied, NewKey, fresh_secret};
pub use carrying::{ImportSnapshot, Pushed};
pub use changes::{Change, Changes};
pub use config::ServiceConfig;
pub use doctor::DoctorReport;
pub use error::{CoreError, ErrorClass};
pub use forking::{ForkRequest, ForkSource, Forks};
pub use outgoing::Outgoing;
pub use placement::{ClassChoice, NoClass, SharedKernel, choose_class};
pub use policies::{OutputRules, Policies};
pub use projects::{DEFAULT_PROJECT, NewKeyRequest};
pub use request::{CreateSandbox, Lease, PartialLimits, SandboxChange};
pub use service::{Parts, Service, StartError};
pub use session::Session;
pub use snapshots::TakeSnapshot;
pub use statistics::Statistics;
pub use sweeping::{Cleaned, SweepOptions};
pub use volumes::{CopyVolume, CreateVolume, MountRequest, VolumeStatus};

pub use belljar_types::chain;
