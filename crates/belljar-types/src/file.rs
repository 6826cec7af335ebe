//! Files inside a sandbox: what is asked about them and what is answered.

use crate::{GuestPath, Invalid, UserName};

/// A piece of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ByteRange {
    /// First byte.
    pub offset: u64,
    /// How many at most; to the end when unset.
    pub length: Option<u64>,
}

/// The last part of a path; bytes, as on Linux.
pub type EntryName = Vec<u8>;

/// What kind of thing a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A device, socket or pipe.
    Other,
}

/// What `stat` tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileInfo {
    /// The path asked for, or found.
    pub path: GuestPath,
    /// What it is (of the link itself, not of what it points to).
    pub kind: FileKind,
    /// Size in bytes.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Owner's number.
    pub uid: u32,
    /// Group's number.
    pub gid: u32,
    /// Owner's name, where the sandbox has one for the number.
    pub owner: Option<String>,
    /// Group's name.
    pub group: Option<String>,
    /// Last change of the content, nanoseconds since 1970.
    pub modified_nanos: i64,
    /// Where a symbolic link points.
    pub symlink_target: Option<Vec<u8>>,
    /// Whether it has extended attributes; known of files that were just written, where it was asked for and could be found out.
    pub attributes: Option<bool>,
}

/// How to write a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteOptions {
    /// Who writes; the default user when unset. New files and directories belong to them.
    pub user: Option<UserName>,
    /// Where to begin; the file is cut to nothing first when unset.
    pub offset: Option<u64>,
    /// Permission bits of a file that is made anew; 0644 when unset.
    pub mode: Option<u32>,
    /// Make missing parent directories.
    pub make_parents: bool,
    /// Refuse if it exists.
    pub create_new: bool,
    /// Take over a file that is there already, if whoever writes may. Those who watch it are told of it either way.
    pub claim: bool,
    /// Say in the answer whether it has extended attributes. Where the host keeps them that takes a look at its disk.
    pub tell_attributes: bool,
}

/// How to list a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListOptions {
    /// Who looks.
    pub user: Option<UserName>,
    /// 1 is the directory's own entries, 2 those of its directories too, and so on.
    pub depth: u32,
    /// Stop after this many.
    pub max_entries: u32,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self { user: None, depth: 1, max_entries: 100_000 }
    }
}

/// What happened to a watched file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileEventKind {
    /// It came into being, or was moved to here.
    Created,
    /// Its content changed.
    Written,
    /// Its mode, owner or times changed.
    Attributes,
    /// It was removed.
    Removed,
    /// It was moved away from here.
    Renamed,
    /// Events fell out because the reader was too slow: look again.
    Overflowed,
}

/// One event below a watched directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEvent {
    /// What happened.
    pub kind: FileEventKind,
    /// Path relative to the watched directory; empty for the directory itself.
    pub name: Vec<u8>,
}

/// What to look for in files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery {
    /// Who looks.
    pub user: Option<UserName>,
    /// Where to begin.
    pub root: GuestPath,
    /// Shell pattern for the name (`*.rs`); any when unset.
    pub name: Option<String>,
    /// Literal bytes to find in the content; only names when unset.
    pub content: Option<Vec<u8>>,
    /// Stop after this many hits.
    pub max_hits: u32,
}

/// Something found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    /// Where.
    pub path: GuestPath,
    /// Line number from 1, for content.
    pub line: Option<u64>,
    /// The line, shortened, for content.
    pub text: Vec<u8>,
}

impl SearchQuery {
    /// Refuses what cannot be searched.
    pub fn validate(&self) -> Result<(), Invalid> {
        if self.content.as_ref().is_some_and(Vec::is_empty) {
            return Err(Invalid::new("content", "at least one byte to look for", ""));
        }
        if self.max_hits == 0 {
            return Err(Invalid::new("max_hits", "at least 1", "0"));
        }
        Ok(())
    }
}
