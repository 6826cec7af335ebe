//! What a sandbox used, as the host sees it and as the agent sees it.

/// Counted by the host; the sandbox cannot change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Usage {
    /// CPU time of everything in the sandbox and of its engine, in microseconds, since it was made: pauses and roll-backs take nothing off.
    pub cpu_micros: u64,
    /// Memory now, in bytes.
    pub memory_bytes: u64,
    /// Most memory so far, in bytes.
    pub memory_peak_bytes: u64,
    /// Bytes added to the template on disk, as of the filesystem's last commit: up to a minute late. The limit is enforced at once all the same.
    pub disk_bytes: u64,
    /// Processes and threads now (on the gVisor class: of the engine).
    pub pids: u32,
    /// How often the kernel killed a process for memory.
    pub oom_kills: u64,
}

/// What went through the boundary of a sandbox's network, counted by the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Traffic {
    /// Bytes from the sandbox.
    pub sent: u64,
    /// Bytes to the sandbox.
    pub received: u64,
    /// Connections that were allowed.
    pub connections: u64,
    /// Connections, requests and names that were refused.
    pub refused: u64,
}

/// As the agent sees it from inside: for people and dashboards, not for billing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct GuestMetrics {
    /// Processors that can be used.
    pub cpus: u32,
    /// CPU time of all processes inside, in microseconds.
    pub cpu_micros: u64,
    /// Memory in all, in bytes.
    pub memory_total_bytes: u64,
    /// Memory in use, in bytes.
    pub memory_used_bytes: u64,
    /// Size of the root filesystem, in bytes.
    pub disk_total_bytes: u64,
    /// Of it in use, in bytes.
    pub disk_used_bytes: u64,
    /// Processes now.
    pub processes: u32,
}

/// A port that a program inside listens on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct ListeningPort {
    /// The address it is bound to.
    pub address: std::net::IpAddr,
    /// The port.
    pub port: u16,
    /// Who listens, where it can be told.
    pub pid: Option<u32>,
}
