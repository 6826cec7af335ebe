//! [`Capacity`]: how much room the host has left, asked before a sandbox is made.

/// What is left on the host now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// All memory, in bytes.
    pub memory_total_bytes: u64,
    /// Memory that can be had without swapping, in bytes.
    pub memory_available_bytes: u64,
    /// Bytes left on the disk that holds sandboxes.
    pub disk_available_bytes: u64,
}

/// Tells how much room there is. Cheap: asked for every sandbox.
pub trait Capacity: Send + Sync {
    /// What is left.
    fn room(&self) -> std::io::Result<Room>;
}
