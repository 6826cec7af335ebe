//! Why the host did not do what it was asked; the variant says what was being attempted, the fields for whom and where.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use belljar_linux::cgroup::CgroupError;
use belljar_ports::RuntimeError;
use belljar_types::{Invalid, IsolationClass, LayerDigest, MountPath, SandboxId, SnapshotId, VolumeName, lacks_room};

/// What went wrong on the host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The request is wrong; nothing was changed.
    #[error("refused the request")]
    Invalid(#[from] Invalid),
    /// There is a sandbox of this id already.
    #[error("sandbox {id} exists already")]
    Exists {
        /// Whose id it is.
        id: SandboxId,
    },
    /// There is no sandbox of this id.
    #[error("sandbox {id} is not here")]
    NotFound {
        /// The id asked for.
        id: SandboxId,
    },
    /// The sandbox is not in the state that this needs.
    #[error("sandbox {id} is not in the state this needs: {state}")]
    WrongState {
        /// The sandbox.
        id: SandboxId,
        /// What state it is in.
        state: &'static str,
    },
    /// There is no such snapshot, or it was never finished.
    #[error("snapshot {id} is not here")]
    NoSnapshot {
        /// The id asked for.
        id: SnapshotId,
    },
    /// There is a snapshot of this id already.
    #[error("snapshot {id} exists already")]
    SnapshotExists {
        /// Whose id it is.
        id: SnapshotId,
    },
    /// A volume is a bucket, and nobody serves it.
    #[error(
        "serve the bucket behind volume {name}; the server's log says more, and [buckets] in its configuration names the buckets there are"
    )]
    Bucket {
        /// Which volume.
        name: VolumeName,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
    /// A layer is not in the pool.
    #[error("layer {digest} is not in the pool; import or build its template first")]
    MissingLayer {
        /// Which.
        digest: LayerDigest,
    },
    /// Nobody said which layer holds the agent.
    #[error("this host has no agent layer yet; import the agent and set it before making sandboxes")]
    NoAgent,
    /// Something ran out.
    #[error("the host is out of {resource}")]
    Exhausted {
        /// What.
        resource: &'static str,
    },
    /// Open sandboxes were not configured.
    #[error("this host has no open network slots; set open_slots above 0 to allow sandboxes with an open network")]
    OpenNetworkDisabled,
    /// Filtered sandboxes were not configured.
    #[error("this host has no filtered network slots; set filtered_slots above 0 to allow sandboxes that reach what their policy allows")]
    FilteredNetworkDisabled,
    /// Another process owns the data directory.
    #[error("{path} is in use by another belljar process; stop it or choose another data directory")]
    Locked {
        /// The lock's file.
        path: PathBuf,
    },
    /// The host was closed.
    #[error("the host was closed")]
    Closed,
    /// It cannot be closed while sandboxes are there.
    #[error("{sandboxes} sandboxes are still there; remove them first")]
    InUse {
        /// How many.
        sandboxes: usize,
    },
    /// A program is not installed.
    #[error("found no {program} to {purpose}; install the package {package}")]
    MissingTool {
        /// The program.
        program: &'static str,
        /// What it was to do.
        purpose: &'static str,
        /// The package that holds it.
        package: &'static str,
    },
    /// A program could not be run.
    #[error("run {program} to {purpose}")]
    RunTool {
        /// The program.
        program: &'static str,
        /// What it was to do.
        purpose: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A program failed.
    #[error("{program}, which was to {purpose}, failed with {status} and said: {said}")]
    FailedTool {
        /// The program.
        program: &'static str,
        /// What it was to do.
        purpose: &'static str,
        /// Its exit status.
        status: ExitStatus,
        /// What it said, made safe to print.
        said: String,
    },
    /// A directory or file of the host itself.
    #[error("{operation} {path}")]
    Files {
        /// What was being attempted.
        operation: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The pool as a whole.
    #[error("{operation} of the pool {path}")]
    Pool {
        /// What was being attempted.
        operation: &'static str,
        /// The image or the mount point.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The gateway between the host and all sandboxes.
    #[error("{operation} for the network gateway")]
    Gateway {
        /// What was being attempted.
        operation: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// One network slot.
    #[error("{operation} of network slot {slot}")]
    Slot {
        /// What was being attempted.
        operation: &'static str,
        /// Which slot.
        slot: u32,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The instance's control groups.
    #[error("prepare the host's cgroups")]
    Cgroups(#[source] CgroupError),
    /// The record of one sandbox.
    #[error("{operation} the record of sandbox {id}")]
    Record {
        /// What was being attempted.
        operation: &'static str,
        /// Whose.
        id: SandboxId,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The disk of one sandbox.
    #[error("{operation} the disk of sandbox {id}")]
    Disk {
        /// What was being attempted.
        operation: &'static str,
        /// Whose.
        id: SandboxId,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// One snapshot.
    #[error("{operation} snapshot {id}")]
    Snapshot {
        /// What was being attempted.
        operation: &'static str,
        /// Which.
        id: SnapshotId,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The control group of one sandbox.
    #[error("{operation} the cgroup of sandbox {id}")]
    Cgroup {
        /// What was being attempted.
        operation: &'static str,
        /// Whose.
        id: SandboxId,
        /// Why not.
        #[source]
        source: CgroupError,
    },
    /// Killed processes are still there.
    #[error("processes of sandbox {id} did not end within {seconds} seconds of being killed")]
    Undying {
        /// Whose.
        id: SandboxId,
        /// How long was waited.
        seconds: u64,
    },
}

/// What ran out when the pool is full.
const DISK_SPACE: &str = "disk space";

/// The contract's word for a disk, or a share of it, that is full.
pub fn no_disk_space() -> RuntimeError {
    RuntimeError::Exhausted { resource: DISK_SPACE }
}

/// Whether a directory for a volume could not be made because of what is there already, and not for the host's own trouble.
pub fn is_in_the_way(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(error.raw_os_error().map(Errno::from_raw_os_error), Some(Errno::LOOP | Errno::NOTDIR | Errno::XDEV))
}

/// The contract's word for that.
pub fn no_mount_point(path: &MountPath) -> RuntimeError {
    Invalid::new("volumes.path", "a directory, or a path at which one can be made without passing a symbolic link or a file", path.as_str())
        .into()
}

impl HostError {
    /// As an error of the contract, from an engine of this class: what the caller can mend keeps its own word, the rest is the host's trouble.
    pub fn during(self, class: IsolationClass, operation: &'static str, id: &SandboxId) -> RuntimeError {
        match self {
            Self::Invalid(invalid) => RuntimeError::Invalid(invalid),
            Self::Exists { id } => RuntimeError::Exists { id },
            Self::NotFound { id } => RuntimeError::NotFound { id },
            Self::WrongState { id, state } => RuntimeError::WrongState { id, state: state.to_owned() },
            Self::NoSnapshot { id } => RuntimeError::NoSnapshot { id },
            Self::SnapshotExists { id } => RuntimeError::SnapshotExists { id },
            Self::Exhausted { resource } => RuntimeError::Exhausted { resource },
            Self::MissingLayer { digest } => {
                let expected = "layers that are in the pool; build or import the template first";
                RuntimeError::Invalid(Invalid::new("layers", expected, digest.as_str()))
            }
            Self::OpenNetworkDisabled => RuntimeError::Unsupported { class, verb: "an open network", reason: self.to_string() },
            Self::FilteredNetworkDisabled => RuntimeError::Unsupported { class, verb: "a filtered network", reason: self.to_string() },
            Self::Disk { source, .. } | Self::Snapshot { source, .. } | Self::Files { source, .. } | Self::Record { source, .. }
                if lacks_room(&source) =>
            {
                tracing::warn!(sandbox = %id, operation, "there is no disk space left for this");
                no_disk_space()
            }
            other => RuntimeError::Host { operation, id: id.clone(), source: Box::new(other) },
        }
    }
}
