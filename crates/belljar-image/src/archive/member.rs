//! One entry of a tar stream as it will be unpacked, after long names and extended headers were folded into it.

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MemberKind {
    File {
        /// Stretches of data in a file with holes; `None` for an ordinary one.
        sparse: Option<Vec<Stretch>>,
    },
    Directory,
    Symlink,
    HardLink,
    Fifo,
    /// A character device 0:0.
    Whiteout,
    Device,
    Unknown(u8),
}

/// A stretch of data in a file with holes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// One entry.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) path: Vec<u8>,
    pub(crate) kind: MemberKind,
    pub(crate) link: Vec<u8>,
    pub(crate) attributes: Attributes,
    /// Size of the file once unpacked, holes included.
    pub(crate) size: u64,
}

/// Who owns an entry and what else is known of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    pub(crate) mode: u32,
    pub(crate) uid: u64,
    pub(crate) gid: u64,
    pub(crate) mtime: Mtime,
    pub(crate) xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// When a file was changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Mtime {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: u32,
}
