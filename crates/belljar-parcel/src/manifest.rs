//! What a parcel says about itself.

use belljar_ports::ParcelError;
use belljar_types::{LayerDigest, Snapshot};
use serde::{Deserialize, Serialize};

/// The longest that is read.
pub(crate) const LONGEST: u64 = 4 << 20;
const MOST_LAYERS: usize = 500;
const MOST_MEMORY_FILES: usize = 16;

/// What a memory image depends on: it goes on only where these are there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemoryNeeds {
    /// The engine and its version.
    pub(crate) engine: String,
    /// What the processor could do where it was packed, in order.
    pub(crate) processor: Vec<String>,
}

impl MemoryNeeds {
    /// What images of this machine need.
    pub(crate) fn here(engine: &str) -> std::io::Result<Self> {
        let text = std::fs::read_to_string("/proc/cpuinfo")?;
        let flags = text.lines().find_map(|line| line.strip_prefix("flags")?.split_once(':')).map_or("", |(_, flags)| flags);
        let mut processor: Vec<String> = flags.split_whitespace().map(str::to_owned).collect();
        processor.sort();
        Ok(Self { engine: engine.to_owned(), processor })
    }
}

/// The first part.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// As the service knows it.
    pub(crate) snapshot: Snapshot,
    /// As the host knows it: layers, agent, and whom the agent in memory takes itself for.
    pub(crate) host: belljar_host::Snapshot,
    /// Whether its layers are in it.
    pub(crate) with_layers: bool,
    /// What the memory image needs, if there is one.
    pub(crate) memory: Option<MemoryNeeds>,
    /// The files of the memory image, in order.
    pub(crate) memory_files: Vec<String>,
}

impl Manifest {
    /// The layers that travel along, lowest first.
    pub(crate) fn layers(&self) -> impl Iterator<Item = &LayerDigest> {
        self.host.layers.iter().chain(&self.host.agent)
    }

    /// Whether what it says makes sense together: it was written by anybody.
    pub(crate) fn check(&self) -> Result<(), ParcelError> {
        let damaged = |reason: &str| ParcelError::Damaged { part: "manifest".to_owned(), reason: reason.to_owned() };
        let has_memory = self.host.identity.is_some();
        if self.host.id != self.snapshot.id || self.host.class != self.snapshot.class || self.host.layers != self.snapshot.spec.layers {
            return Err(damaged("it speaks of two snapshots"));
        }
        if self.host.layers.is_empty() || self.host.layers.len() > MOST_LAYERS {
            return Err(damaged("it has no layers, or more than there can be"));
        }
        let kind_fits = has_memory == (self.snapshot.kind == belljar_types::SnapshotKind::Memory);
        if !kind_fits || has_memory != self.memory.is_some() || has_memory == self.memory_files.is_empty() {
            return Err(damaged("it does not say whether there is memory"));
        }
        let plain = |name: &String| {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            !name.is_empty() && name.len() <= 64 && !name.starts_with('.') && name.bytes().all(allowed)
        };
        if self.memory_files.len() > MOST_MEMORY_FILES || !self.memory_files.iter().all(plain) {
            return Err(damaged("a file of its memory has a name that cannot be"));
        }
        Ok(())
    }
}
