//! Why the service did not do what it was asked. Every front turns these into its own words; `code` is stable and never reused.

use std::time::Duration;

use belljar_ports::{
    AuditError, BlobError, EgressError, GuestError, ParcelError, RuntimeError, SecretsError, StoreError, TemplateError, VolumeError,
};
use belljar_types::{
    ArtifactId, BuildId, Invalid, IsolationClass, KeyId, Meter, ProcessId, ProjectId, SandboxEnd, SandboxId, SandboxState, Scope,
    TemplateName, VolumeName,
};

use crate::NoClass;

/// What kind of refusal or failure it is: enough for a front to choose its own status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// The request is wrong.
    Invalid,
    /// The key may not do that.
    Forbidden,
    /// There is no such thing, for this caller.
    NotFound,
    /// It cannot be done in the present state.
    Conflict,
    /// The project may not have more.
    Quota,
    /// The host is full at the moment: try again later.
    Busy,
    /// This host's engines cannot do it.
    Unsupported,
    /// Something the service needs is away; the request was right.
    Unavailable,
    /// A fault of the service or its host.
    Internal,
}

/// Why something was not done. Nothing was changed unless the variant says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CoreError {
    /// The request is wrong.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The key lacks a scope.
    #[error("this key lacks the scope `{needed}`")]
    Forbidden {
        /// What it would need.
        needed: Scope,
    },
    /// No such sandbox in the caller's project.
    #[error("there is no sandbox {id}")]
    NoSandbox {
        /// The id asked for.
        id: SandboxId,
    },
    /// No such snapshot in the caller's project.
    #[error("there is no snapshot {name}: `belljar snapshot ls` shows those there are")]
    NoSnapshot {
        /// The id or name asked for, safe to print.
        name: String,
    },
    /// No such volume in the caller's project.
    #[error("there is no volume {name}: `belljar volume ls` shows those there are")]
    NoVolume {
        /// The id or name asked for, safe to print.
        name: String,
    },
    /// Only one sandbox can have it.
    #[error(
        "sandbox {id} has volume {name} read-write, for itself alone, so there cannot be several of it: mount the volume shared or read-only to fork"
    )]
    ExclusiveVolume {
        /// The sandbox.
        id: SandboxId,
        /// Its volume.
        name: VolumeName,
    },
    /// No such artifact in the caller's project.
    #[error("there is no artifact {id}")]
    NoArtifact {
        /// The id asked for.
        id: ArtifactId,
    },
    /// No such recording in the caller's project.
    #[error("there is no recording of process {process} of sandbox {sandbox}: terminals are recorded with [audit] record_terminals")]
    NoRecording {
        /// The sandbox asked for.
        sandbox: SandboxId,
        /// The process asked for.
        process: ProcessId,
    },
    /// The disk did not give what was recorded.
    #[error("{operation}")]
    Tapes {
        /// What was being attempted.
        operation: &'static str,
        /// What the disk said.
        #[source]
        source: std::io::Error,
    },
    /// No such template for the caller.
    #[error("there is no template {name}: `belljar template ls` shows those there are")]
    NoTemplate {
        /// The name asked for.
        name: TemplateName,
    },
    /// No such build for the caller.
    #[error("there is no build {id}; builds that ended are remembered for a week")]
    NoBuild {
        /// The id asked for.
        id: BuildId,
    },
    /// The build was started already.
    #[error("build {id} is {state}, so it cannot be started")]
    BuildStarted {
        /// Which.
        id: BuildId,
        /// How far it has come.
        state: &'static str,
    },
    /// No such project.
    #[error("there is no project {id}")]
    NoProject {
        /// The id asked for.
        id: ProjectId,
    },
    /// No such key.
    #[error("there is no key {id}")]
    NoKey {
        /// The id asked for.
        id: KeyId,
    },
    /// The sandbox is in a state in which this cannot be done.
    #[error("sandbox {id} is {state}, so it is not possible to {verb}")]
    WrongState {
        /// Which.
        id: SandboxId,
        /// What it is doing.
        state: SandboxState,
        /// What was asked.
        verb: &'static str,
    },
    /// The sandbox has ended.
    #[error("sandbox {id} has ended: {}", end.detail)]
    Ended {
        /// Which.
        id: SandboxId,
        /// How.
        end: SandboxEnd,
    },
    /// It could not be made; nothing is left of it.
    #[error("sandbox {id} could not be made: {detail}")]
    NotMade {
        /// Which.
        id: SandboxId,
        /// Why, safe to print.
        detail: String,
    },
    /// What its template starts did not start or was not ready; nothing is left of a sandbox that was being made.
    #[error("sandbox {id} did not start: {detail}")]
    StartFailed {
        /// Which.
        id: SandboxId,
        /// Why, safe to print.
        detail: String,
    },
    /// The host cannot hold it now.
    #[error("the server is busy: {reason}; try again in {} s", retry_after.as_secs())]
    Busy {
        /// What is short.
        reason: String,
        /// When to come back.
        retry_after: Duration,
    },
    /// No class fits.
    #[error(transparent)]
    NoClass(#[from] NoClass),
    /// The sandbox's engine does not work at the moment. The sandbox is left as it is.
    #[error("sandbox {id} needs the {class} engine, which does not work at the moment: {reason}")]
    EngineAway {
        /// Which.
        id: SandboxId,
        /// What isolates it.
        class: IsolationClass,
        /// What is wrong with the engine.
        reason: String,
    },
    /// The server is stopping.
    #[error("the server is stopping and takes no new work")]
    Stopping,
    /// Something inside the sandbox was not done.
    #[error(transparent)]
    Guest(#[from] GuestError),
    /// The sandbox could not be let out as its policy says.
    #[error("open the network of the sandbox")]
    Egress(#[from] EgressError),
    /// A secret was not kept, found or forgotten.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
    /// The engine refused or failed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The store failed or refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A budget is used up.
    #[error("the budget of {subject} for {meter} is used up: {used} of {limit}")]
    OverBudget {
        /// Whose.
        subject: String,
        /// Of what.
        meter: Meter,
        /// How much was used.
        used: u64,
        /// How much was allowed.
        limit: u64,
    },
    /// It could not be recorded and was not done; or the record could not be read.
    #[error("the audit log does not work")]
    Audit(#[from] AuditError),
    /// Bytes were not kept or found.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// A snapshot was not packed or taken in.
    #[error(transparent)]
    Parcel(#[from] ParcelError),
    /// Nothing was pushed under that name.
    #[error("no snapshot was pushed as {name} by this project")]
    NotPushed {
        /// The name asked for, safe to print.
        name: String,
    },
    /// A template was not made, found or removed.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// Something was not done with a volume or its content.
    #[error(transparent)]
    Volume(#[from] VolumeError),
}

/// Linux's number for "no such file or directory".
const ENOENT: i32 = 2;

impl CoreError {
    /// A word for programs; stable.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) | Self::Guest(GuestError::Invalid(_)) | Self::Runtime(RuntimeError::Invalid(_)) => "invalid",
            Self::Template(TemplateError::Invalid(_)) | Self::Volume(VolumeError::Invalid(_)) => "invalid",
            Self::Secrets(SecretsError::Invalid(_)) => "invalid",
            Self::Secrets(SecretsError::Missing { .. }) => "secret_not_found",
            Self::NoVolume { .. } | Self::Volume(VolumeError::Absent { .. }) => "volume_not_found",
            Self::Store(StoreError::Absent { what: "volume", .. }) => "volume_not_found",
            Self::ExclusiveVolume { .. } | Self::Store(StoreError::VolumeInUse { .. }) => "volume_in_use",
            Self::Store(StoreError::VolumeReadOnly { .. }) | Self::Volume(VolumeError::ReadOnly { .. }) => "volume_read_only",
            Self::Volume(VolumeError::NoEntry { .. }) => "file_not_found",
            Self::Volume(VolumeError::EntryExists { .. }) => "exists",
            Self::Volume(VolumeError::WrongKind { .. }) => "wrong_kind",
            Self::Volume(VolumeError::Full { .. }) => "volume_full",
            Self::Volume(VolumeError::HostFull { .. }) => "busy",
            Self::Volume(VolumeError::Upload { .. }) => "upload_failed",
            Self::Volume(_) => "volume_storage_failed",
            Self::Forbidden { .. } => "forbidden",
            Self::NoSandbox { .. } => "sandbox_not_found",
            Self::NoSnapshot { .. } | Self::Runtime(RuntimeError::NoSnapshot { .. }) => "snapshot_not_found",
            Self::NoArtifact { .. } => "artifact_not_found",
            Self::NoRecording { .. } => "recording_not_found",
            Self::Tapes { .. } => "recording_failed",
            Self::Blob(BlobError::TooLarge { .. }) => "artifact_too_large",
            Self::Blob(BlobError::Source(_)) => "guest_lost",
            Self::Blob(BlobError::Full { .. }) => "blobs_full",
            Self::Blob(_) => "blob_failed",
            Self::NotPushed { .. } => "snapshot_not_found",
            Self::Parcel(ParcelError::HostFull) => "busy",
            Self::Parcel(ParcelError::Storage { .. }) => "snapshot_storage_failed",
            Self::Parcel(ParcelError::MemoryElsewhere { .. }) => "memory_cannot_go_on",
            Self::Parcel(_) => "bad_snapshot_file",
            Self::NoTemplate { .. } => "template_not_found",
            Self::NoBuild { .. } => "build_not_found",
            Self::BuildStarted { .. } => "build_started",
            Self::NoProject { .. } => "project_not_found",
            Self::NoKey { .. } => "key_not_found",
            Self::WrongState { .. } | Self::Runtime(RuntimeError::WrongState { .. }) => "wrong_state",
            Self::Store(StoreError::Conflict { .. } | StoreError::SnapshotConflict { .. } | StoreError::VolumeConflict { .. }) => {
                "wrong_state"
            }
            Self::Ended { .. } | Self::Runtime(RuntimeError::Ended { .. }) => "sandbox_ended",
            Self::NotMade { .. } => "not_made",
            Self::StartFailed { .. } => "start_failed",
            Self::Busy { .. } | Self::Runtime(RuntimeError::Exhausted { .. }) => "busy",
            Self::NoClass(_) => "isolation_unavailable",
            Self::EngineAway { .. } => "engine_unavailable",
            Self::Stopping | Self::Store(StoreError::Fenced { .. }) => "stopping",
            Self::Guest(GuestError::NoProcess { .. }) => "process_not_found",
            Self::Guest(GuestError::Refused { errno: ENOENT, .. }) => "file_not_found",
            Self::Guest(GuestError::Refused { .. }) => "guest_refused",
            Self::Guest(GuestError::TooOld { .. }) | Self::Runtime(RuntimeError::Unsupported { .. }) => "unsupported",
            Self::Guest(GuestError::Misbehaved { .. }) => "guest_misbehaved",
            Self::Audit(_) | Self::Guest(GuestError::Unrecorded(_)) => "audit_unavailable",
            Self::OverBudget { .. } => "budget_exceeded",
            Self::Guest(_) => "guest_lost",
            Self::Store(StoreError::OverQuota { .. }) => "quota_exceeded",
            Self::Store(StoreError::KeyReused { .. }) => "idempotency_key_reused",
            Self::Store(StoreError::Exists { .. }) | Self::Secrets(SecretsError::Exists { .. }) => "exists",
            Self::Secrets(_) => "secrets_failed",
            Self::Store(StoreError::Full) => "store_full",
            Self::Store(_) => "store_failed",
            Self::Template(TemplateError::HostFull) => "busy",
            Self::Template(TemplateError::Build { .. }) => "template_failed",
            Self::Template(_) => "template_storage_failed",
            Self::Runtime(_) => "engine_failed",
            Self::Egress(_) => "egress_failed",
        }
    }

    /// What kind of failure it is.
    pub fn class(&self) -> ErrorClass {
        match self.code() {
            "invalid" | "artifact_too_large" | "bad_snapshot_file" | "template_failed" | "start_failed" | "upload_failed" => {
                ErrorClass::Invalid
            }
            "forbidden" => ErrorClass::Forbidden,
            "sandbox_not_found"
            | "recording_not_found"
            | "snapshot_not_found"
            | "artifact_not_found"
            | "volume_not_found"
            | "template_not_found"
            | "build_not_found"
            | "project_not_found"
            | "key_not_found"
            | "secret_not_found"
            | "process_not_found"
            | "file_not_found" => ErrorClass::NotFound,
            "wrong_state"
            | "build_started"
            | "sandbox_ended"
            | "exists"
            | "idempotency_key_reused"
            | "guest_refused"
            | "volume_in_use"
            | "volume_read_only"
            | "volume_full"
            | "wrong_kind" => ErrorClass::Conflict,
            "quota_exceeded" | "budget_exceeded" => ErrorClass::Quota,
            "busy" => ErrorClass::Busy,
            "isolation_unavailable" | "unsupported" | "memory_cannot_go_on" => ErrorClass::Unsupported,
            "engine_unavailable" | "stopping" | "guest_lost" | "audit_unavailable" | "store_full" | "blobs_full" => ErrorClass::Unavailable,
            _ => ErrorClass::Internal,
        }
    }

    /// When to try again, where that helps.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after, .. } => Some(*retry_after),
            Self::Runtime(RuntimeError::Exhausted { .. })
            | Self::Volume(VolumeError::HostFull { .. })
            | Self::Parcel(ParcelError::HostFull)
            | Self::Template(TemplateError::HostFull)
            | Self::Stopping
            | Self::Store(StoreError::Fenced { .. }) => Some(Duration::from_secs(1)),
            _ => None,
        }
    }

    /// The field that was wrong, if one was.
    pub fn invalid(&self) -> Option<&Invalid> {
        match self {
            Self::Invalid(invalid)
            | Self::Guest(GuestError::Invalid(invalid))
            | Self::Runtime(RuntimeError::Invalid(invalid))
            | Self::Template(TemplateError::Invalid(invalid))
            | Self::Secrets(SecretsError::Invalid(invalid))
            | Self::Volume(VolumeError::Invalid(invalid)) => Some(invalid),
            _ => None,
        }
    }
}
