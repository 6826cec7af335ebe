//! How much an archive may ask for. A small archive can describe a huge tree; these numbers stop it before the disk does.

/// Bounds on one archive. What goes over one is refused and leaves nothing behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// Files, directories and links together.
    pub entries: u64,
    /// Bytes of all files together, holes included.
    pub total_bytes: u64,
    /// Bytes of one file, holes included.
    pub file_bytes: u64,
    /// Directories above a file.
    pub depth: usize,
    /// Bytes that one compressed byte may become, counted once `ratio_free_bytes` have come out.
    pub ratio: u64,
    /// Bytes that may come out before the ratio counts: a few well-compressed files are no attack.
    pub ratio_free_bytes: u64,
}

impl Default for ArchiveLimits {
    fn default() -> Self {
        Self { entries: 2_000_000, total_bytes: 64 << 30, file_bytes: 16 << 30, depth: 128, ratio: 200, ratio_free_bytes: 256 << 20 }
    }
}
