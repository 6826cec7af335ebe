//! The words every other crate speaks: ids that cannot be mixed up, what a sandbox is made from, what it may use, how
//! processes and files inside it are named, and how bad input is refused.
//!
//! Nothing here does I/O (ids draw randomness, that is all), knows an engine, or knows a vendor.

mod artifact;
mod audit;
mod build;
mod file;
mod id;
mod invalid;
mod isolation;
mod life;
mod limits;
mod metering;
mod path;
mod prices;
mod process;
mod project;
mod quantity;
mod reserved;
mod sandbox;
mod secret;
mod snapshot;
mod start_up;
mod template;
mod text;
mod usage;
mod volume;
mod webhook;
mod wish;

pub use artifact::{Artifact, ArtifactState};
pub use audit::{Actor, AuditAction, AuditEvent, AuditRecord, ContentDigest, Phase, audit_text};
pub use build::{BuildFailure, BuildLog, BuildPlace, BuildRecord, BuildState, BuildStep, LogLevel};
pub use file::{ByteRange, EntryName, FileEvent, FileEventKind, FileInfo, FileKind, ListOptions, SearchHit, SearchQuery, WriteOptions};
pub use id::{
    ArtifactId, BuildId, ExecutionId, FilesHash, KeyId, ProcessId, ProjectId, SandboxId, SnapshotId, SnapshotName, TemplateName, VolumeId,
    VolumeName, WebhookId,
};
pub use invalid::Invalid;
pub use isolation::{Check, CheckOutcome, EngineReport, IsolationClass, IsolationRequest};
pub use life::{EndCause, Epoch, OnTimeout, Pause, PauseKind, PausedMemory, Sandbox, SandboxEnd, SandboxState, Timestamp};
pub use limits::Limits;
pub use metering::{AtLimit, Budget, BudgetSubject, Consumption, Meter, MeterReading, Tally};
pub use path::{GuestPath, escape_untrusted};
pub use prices::{Money, Prices};
pub use process::{
    ExitStatus, KillCause, Offsets, OutputEvent, Overflow, ProcessInfo, ProcessSpec, PtySize, Signal, SpoolPolicy, StreamKind, Termination,
    UserName,
};
pub use project::{ApiKey, KeyHash, Project, Quota, Scope};
pub use quantity::{parse_bytes, parse_duration};
pub use reserved::RESERVED_NETWORKS;
pub use sandbox::{EndReason, Execution, Network, PrivilegePolicy, SandboxSpec};
pub use secret::Secret;
pub use snapshot::{Beginning, Origin, Snapshot, SnapshotKind, SnapshotPurpose, SnapshotState};
pub use start_up::{ReadyCheck, StartUp};
pub use template::{LayerDigest, Template, TemplateDefaults};
pub use text::{chain, hex, lacks_room};
pub use usage::{GuestMetrics, ListeningPort, Traffic, Usage};
pub use volume::{EntryChange, MountMode, MountPath, Volume, VolumeEntry, VolumeMount, VolumePath, VolumeState, VolumeWrite};
pub use webhook::{Delivery, Message, MessageKind, Webhook};
pub use wish::{KeepWish, WishId};
