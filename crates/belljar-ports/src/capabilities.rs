//! What an engine can do, told before it is asked to.

/// What happens to a sandbox's memory when it is paused or snapshotted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryState {
    /// It cannot be kept.
    Lost,
    /// It is kept, but stays in the host's memory.
    Resident,
    /// It is written to disk and the host's memory is free again.
    OnDisk,
}

/// What the kernel's out-of-memory killer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OomScope {
    /// One process in the sandbox, reported with its exit.
    Process,
    /// The whole sandbox, reported as its end.
    Sandbox,
}

/// What an engine can do on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Pausing, and where memory goes.
    pub pause: Option<MemoryState>,
    /// Snapshots of the filesystem.
    pub snapshot_filesystem: bool,
    /// Snapshots with memory.
    pub snapshot_memory: bool,
    /// Forks of a running sandbox.
    pub fork: bool,
    /// What running out of memory ends.
    pub oom: OomScope,
    /// Whether set-user-ID programs gain anything (Belljar's `sudo` does not need them).
    pub setuid: bool,
    /// Whether files can have extended attributes.
    pub xattrs: bool,
    /// Whether volumes can be mounted.
    pub volumes: bool,
}
