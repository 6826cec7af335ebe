//! Why a bucket could not be served, for the operator; and what a program in the sandbox is told instead, which is one number.

use std::path::PathBuf;

use fuser::Errno;

/// Why a bucket could not be served.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    /// The file system could not be mounted.
    #[error("mount the bucket on {path}; this needs root and the kernel's fuse (modprobe fuse)")]
    Mount {
        /// Where.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: std::io::Error,
    },
    /// The threads that speak to the bucket could not be started.
    #[error("start the threads that speak to the bucket")]
    Threads(#[source] std::io::Error),
    /// The kernel broke the connection off.
    #[error("serve the bucket on {path}")]
    Serve {
        /// Where.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: std::io::Error,
    },
}

/// What a program is told when the store refuses. The reason is in the host's log, not in the sandbox: it may name hosts and keys.
pub(crate) fn errno(operation: &'static str, path: &object_store::path::Path, error: &object_store::Error) -> Errno {
    let told = match error {
        object_store::Error::NotFound { .. } => return Errno::ENOENT,
        object_store::Error::AlreadyExists { .. } => return Errno::EEXIST,
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => Errno::EACCES,
        object_store::Error::InvalidPath { .. } => Errno::EINVAL,
        // It was replaced while it was being read: never a mixture of two files.
        object_store::Error::Precondition { .. } => Errno::ESTALE,
        _ => Errno::EIO,
    };
    tracing::warn!(operation, key = %path.as_ref().escape_debug(), %error, "a bucket refused");
    told
}

/// The same for the host's own disk, where drafts are.
pub(crate) fn on_disk(operation: &'static str, error: &std::io::Error) -> Errno {
    tracing::warn!(operation, %error, "a draft of a bucket's file could not be used");
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Errno::ENOSPC,
        _ => Errno::EIO,
    }
}
