//! Why an archive was refused. Each reason is its own variant, so that a caller can tell a bomb from an honest mistake, and a test can
//! tell that the right guard stopped it.

use std::io;

use belljar_types::escape_untrusted;

/// An archive that was not taken. Nothing of it remains in the store.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// An entry asks for something that no layer may hold.
    #[error("archive entry \"{}\" refused: {reason}", escape_untrusted(entry))]
    Refused {
        /// The entry's name as the archive gives it.
        entry: Vec<u8>,
        /// What is wrong with it.
        reason: Refusal,
    },
    /// The archive as a whole is too large, too dense or broken.
    #[error("archive refused: {0}")]
    Archive(Refusal),
    /// The bytes could not be read.
    #[error("cannot read the archive")]
    Read(#[source] io::Error),
    /// The entry could not be written to the store.
    #[error("cannot unpack archive entry \"{}\"", escape_untrusted(entry))]
    Unpack {
        /// The entry's name as the archive gives it.
        entry: Vec<u8>,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
}

impl ArchiveError {
    /// Reading failed, unless one of the guards inside the reader did it: then it is that guard's refusal.
    pub(crate) fn from_read(error: io::Error) -> Self {
        match error.downcast::<Refusal>() {
            Ok(refusal) => Self::Archive(refusal),
            Err(error) => Self::Read(error),
        }
    }

    /// The reason, if it was a refusal.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused { reason, .. } | Self::Archive(reason) => Some(reason),
            Self::Read(_) | Self::Unpack { .. } => None,
        }
    }
}

/// What is wrong with an archive or an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The name starts with `/`.
    #[error("its name is absolute; make the archive with relative names")]
    AbsolutePath,
    /// The name climbs.
    #[error("its name contains \"..\"")]
    ParentPath,
    /// The name is empty or holds a NUL byte.
    #[error("its name is empty or contains a NUL byte")]
    BadName,
    /// The name is longer than Linux takes.
    #[error("its name is longer than Linux allows (255 bytes a part, 4095 in all)")]
    LongName,
    /// Too many directories deep.
    #[error("it lies more than {limit} directories deep")]
    Depth {
        /// The bound.
        limit: usize,
    },
    /// A part of the name is a link or a file and not a directory.
    #[error("a part of its name is a symbolic link or a file, not a directory")]
    ThroughLink,
    /// A hard link to something that is not a file of this archive.
    #[error("it is a hard link to \"{}\", which is not a regular file earlier in this archive", escape_untrusted(target))]
    HardLink {
        /// Where it points.
        target: Vec<u8>,
    },
    /// A symbolic link without a target, or with one Linux cannot hold.
    #[error("it is a symbolic link without a usable target")]
    SymlinkTarget,
    /// A device node.
    #[error("it is a device node; leave /dev out of the archive")]
    Device,
    /// A kind of entry that does not belong in a root filesystem.
    #[error("it has the type 0x{0:02x}, which is not a file, directory, link or FIFO")]
    Kind(u8),
    /// A sparse format that is not read.
    #[error("it is stored in a sparse format that is not supported; make the archive without --sparse")]
    Sparse,
    /// An owner outside the ids a sandbox has.
    #[error("its owner or group {0} is outside 0 to 65535, the ids a sandbox has")]
    Owner(u64),
    /// An attribute that would mean something to the host's overlay.
    #[error("it carries the extended attribute \"{}\", which only the host may set", escape_untrusted(.0))]
    Attribute(Vec<u8>),
    /// Its extended header is larger than any honest one.
    #[error("its extended header is larger than {limit} bytes")]
    HeaderSize {
        /// The bound.
        limit: u64,
    },
    /// Headers that do not make sense.
    #[error("its header is malformed: {0}")]
    Header(&'static str),
    /// A whiteout without a name.
    #[error("it is a whiteout without a name")]
    Whiteout,
    /// One file is too large.
    #[error("it is larger than {limit} bytes")]
    FileSize {
        /// The bound.
        limit: u64,
    },
    /// All files together are too large.
    #[error("it unpacks to more than {limit} bytes")]
    TotalSize {
        /// The bound.
        limit: u64,
    },
    /// Too many entries.
    #[error("it has more than {limit} entries")]
    Entries {
        /// The bound.
        limit: u64,
    },
    /// A compression bomb.
    #[error("it unpacks to more than {limit} times its size")]
    Ratio {
        /// The bound.
        limit: u64,
    },
    /// Not an archive, or cut off.
    #[error("it is not a tar archive, or it is damaged: {0}")]
    Damaged(&'static str),
}
