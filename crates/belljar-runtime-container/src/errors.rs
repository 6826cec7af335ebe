//! Why a container could not be made, and how the host's errors become the contract's.

use std::io;
use std::path::PathBuf;

use belljar_host::HostError;
use belljar_linux::cgroup::CgroupError;
use belljar_linux::launch::LaunchError;
use belljar_ports::RuntimeError;
use belljar_types::{IsolationClass, MountPath, SandboxId, lacks_room};

/// What was being attempted for one container.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContainerError {
    /// The files that the agent reads first.
    #[error("write the agent's boot files into the new root")]
    BootFiles(#[source] io::Error),
    /// A directory that something is mounted on.
    #[error("make the directory /{name} in the new root")]
    MountPoint {
        /// Which.
        name: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A directory that a volume is shown at.
    #[error("make the directory {path} for a volume")]
    VolumePoint {
        /// Which.
        path: MountPath,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The user namespace that maps its owners.
    #[error("make a user namespace for host ids from {base}; user namespaces may be switched off (sysctl user.max_user_namespaces)")]
    Users {
        /// The first id.
        base: u32,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A layer with mapped owners.
    #[error("show {path} with the sandbox's owners; this needs a filesystem with idmapped mounts, and Linux 5.19 under an overlay")]
    MapOwners {
        /// Which.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The root itself.
    #[error("mount the overlay of {layers} layers")]
    Overlay {
        /// How many.
        layers: usize,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// One of the small filesystems in memory.
    #[error("fill the filesystem for {at}")]
    MemoryFilesystem {
        /// Where it goes.
        at: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A file that stands for a namespace.
    #[error("open {path}")]
    Open {
        /// Which.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Landlock's rules.
    #[error("make Landlock's rules")]
    Fence(#[source] io::Error),
    /// Limits, names and pipes for the first process.
    #[error("prepare {what}")]
    Prepare {
        /// What.
        what: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The launch; its own words say which step.
    #[error("start the first process")]
    Launch(#[source] LaunchError),
    /// Looking after a process that was started.
    #[error("watch the first process")]
    Watch(#[source] io::Error),
    /// Its control group.
    #[error("use its cgroup")]
    Cgroup(#[source] CgroupError),
    /// The runtime is shutting down.
    #[error("finish before the server stopped")]
    Stopped,
}

impl ContainerError {
    pub(crate) fn during(self, operation: &'static str, id: &SandboxId) -> RuntimeError {
        match self {
            Self::VolumePoint { path, source } if belljar_host::is_in_the_way(&source) => belljar_host::no_mount_point(&path),
            Self::BootFiles(source) | Self::MountPoint { source, .. } | Self::VolumePoint { source, .. } | Self::Overlay { source, .. }
                if lacks_room(&source) =>
            {
                tracing::warn!(sandbox = %id, operation, "there is no disk space left for this");
                belljar_host::no_disk_space()
            }
            other => RuntimeError::Host { operation, id: id.clone(), source: Box::new(other) },
        }
    }
}

/// The contract's word for what the host said.
pub(crate) fn from_host(operation: &'static str, id: &SandboxId, error: HostError) -> RuntimeError {
    error.during(IsolationClass::Container, operation, id)
}
