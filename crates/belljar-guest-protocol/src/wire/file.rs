//! Bodies of the verbs about files.

use belljar_types::{FileEvent, FileEventKind, FileInfo, FileKind, GuestPath, Invalid, ListOptions, SearchHit, SearchQuery, WriteOptions};
use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};

/// A path and who acts: stat, make a directory, remove.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct PathOnly {
    /// The path.
    #[n(0)]
    pub path: ByteVec,
    /// Who acts.
    #[n(1)]
    pub user: Option<String>,
}

/// Read a file or a piece of it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ReadFile {
    /// The path.
    #[n(0)]
    pub path: ByteVec,
    /// Who acts.
    #[n(1)]
    pub user: Option<String>,
    /// First byte.
    #[n(2)]
    pub offset: u64,
    /// How many at most.
    #[n(3)]
    pub length: Option<u64>,
}

/// Write a file from the data frames that follow.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct WriteFile {
    /// The path.
    #[n(0)]
    pub path: ByteVec,
    /// Who acts.
    #[n(1)]
    pub user: Option<String>,
    /// Where to begin.
    #[n(2)]
    pub offset: Option<u64>,
    /// Mode of a new file.
    #[n(3)]
    pub mode: Option<u32>,
    /// Make parents.
    #[n(4)]
    pub make_parents: bool,
    /// Refuse what exists.
    #[n(5)]
    pub create_new: bool,
}

impl WriteFile {
    /// The body for these options.
    pub fn new(path: &GuestPath, options: &WriteOptions) -> Self {
        Self {
            path: path.as_bytes().to_vec().into(),
            user: options.user.as_ref().map(ToString::to_string),
            offset: options.offset,
            mode: options.mode,
            make_parents: options.make_parents,
            create_new: options.create_new,
        }
    }

    /// The options in it.
    pub fn options(&self) -> Result<WriteOptions, Invalid> {
        if let Some(mode) = self.mode.filter(|mode| mode & !0o7777 != 0) {
            return Err(Invalid::new("mode", "permission bits, 0 to 07777", format!("{mode:o}")));
        }
        Ok(WriteOptions {
            user: self.user.as_ref().map(|user| user.parse()).transpose()?,
            offset: self.offset,
            mode: self.mode,
            make_parents: self.make_parents,
            create_new: self.create_new,
        })
    }
}

/// List a directory.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ListDirectory {
    /// The path.
    #[n(0)]
    pub path: ByteVec,
    /// Who acts.
    #[n(1)]
    pub user: Option<String>,
    /// How deep.
    #[n(2)]
    pub depth: u32,
    /// How many.
    #[n(3)]
    pub max_entries: u32,
}

impl ListDirectory {
    /// The body for these options.
    pub fn new(path: &GuestPath, options: &ListOptions) -> Self {
        Self {
            path: path.as_bytes().to_vec().into(),
            user: options.user.as_ref().map(ToString::to_string),
            depth: options.depth,
            max_entries: options.max_entries,
        }
    }
}

/// Move a file.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Rename {
    /// From.
    #[n(0)]
    pub from: ByteVec,
    /// To.
    #[n(1)]
    pub to: ByteVec,
    /// Who acts.
    #[n(2)]
    pub user: Option<String>,
}

/// Change permission bits.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SetMode {
    /// The path.
    #[n(0)]
    pub path: ByteVec,
    /// Who acts.
    #[n(1)]
    pub user: Option<String>,
    /// The bits.
    #[n(2)]
    pub mode: u32,
}

/// Change owner and group.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SetOwner {
    /// The path.
    #[n(0)]
    pub path: ByteVec,
    /// Who acts.
    #[n(1)]
    pub user: Option<String>,
    /// New owner.
    #[n(2)]
    pub uid: Option<u32>,
    /// New group.
    #[n(3)]
    pub gid: Option<u32>,
}

/// Read an extended attribute.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct GetXattr {
    /// The path.
    #[n(0)]
    pub path: ByteVec,
    /// Who acts.
    #[n(1)]
    pub user: Option<String>,
    /// Its name.
    #[n(2)]
    pub name: String,
}

/// The value of an extended attribute.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct XattrValue {
    /// The value, if there is one.
    #[n(0)]
    pub value: Option<ByteVec>,
}

/// Set or remove an extended attribute.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SetXattr {
    /// The path.
    #[n(0)]
    pub path: ByteVec,
    /// Who acts.
    #[n(1)]
    pub user: Option<String>,
    /// Its name.
    #[n(2)]
    pub name: String,
    /// Its new value.
    #[n(3)]
    pub value: Option<ByteVec>,
}

/// Watch a directory.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Watch {
    /// The path.
    #[n(0)]
    pub path: ByteVec,
    /// Who acts.
    #[n(1)]
    pub user: Option<String>,
    /// And all below.
    #[n(2)]
    pub recursive: bool,
}

/// Find files.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Search {
    /// Who acts.
    #[n(0)]
    pub user: Option<String>,
    /// Where to begin.
    #[n(1)]
    pub root: ByteVec,
    /// Pattern for names.
    #[n(2)]
    pub name: Option<String>,
    /// Bytes in the content.
    #[n(3)]
    pub content: Option<ByteVec>,
    /// How many at most.
    #[n(4)]
    pub max_hits: u32,
}

impl From<&SearchQuery> for Search {
    fn from(query: &SearchQuery) -> Self {
        Self {
            user: query.user.as_ref().map(ToString::to_string),
            root: query.root.as_bytes().to_vec().into(),
            name: query.name.clone(),
            content: query.content.clone().map(Into::into),
            max_hits: query.max_hits,
        }
    }
}

impl TryFrom<Search> for SearchQuery {
    type Error = Invalid;
    fn try_from(body: Search) -> Result<Self, Invalid> {
        let query = Self {
            user: body.user.map(|user| user.parse()).transpose()?,
            root: GuestPath::new(Vec::from(body.root))?,
            name: body.name,
            content: body.content.map(Into::into),
            max_hits: body.max_hits,
        };
        query.validate()?;
        Ok(query)
    }
}

/// Whether something was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Made {
    /// It was not there before.
    #[n(0)]
    pub made: bool,
}

/// What a path is.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct FileBody {
    #[n(0)]
    path: ByteVec,
    #[n(1)]
    kind: u8,
    #[n(2)]
    size: u64,
    #[n(3)]
    mode: u32,
    #[n(4)]
    uid: u32,
    #[n(5)]
    gid: u32,
    #[n(6)]
    owner: Option<String>,
    #[n(7)]
    group: Option<String>,
    #[n(8)]
    modified_nanos: i64,
    #[n(9)]
    symlink_target: Option<ByteVec>,
}

impl From<&FileInfo> for FileBody {
    fn from(info: &FileInfo) -> Self {
        Self {
            path: info.path.as_bytes().to_vec().into(),
            kind: match info.kind {
                FileKind::File => 0,
                FileKind::Directory => 1,
                FileKind::Symlink => 2,
                FileKind::Other => 3,
            },
            size: info.size,
            mode: info.mode,
            uid: info.uid,
            gid: info.gid,
            owner: info.owner.clone(),
            group: info.group.clone(),
            modified_nanos: info.modified_nanos,
            symlink_target: info.symlink_target.clone().map(Into::into),
        }
    }
}

impl TryFrom<FileBody> for FileInfo {
    type Error = Invalid;
    fn try_from(body: FileBody) -> Result<Self, Invalid> {
        let kind = match body.kind {
            0 => FileKind::File,
            1 => FileKind::Directory,
            2 => FileKind::Symlink,
            3 => FileKind::Other,
            other => return Err(Invalid::new("kind", "0 to 3", other.to_string())),
        };
        let symlink_target = body.symlink_target.map(Vec::from);
        if symlink_target.as_ref().is_some_and(|target| target.contains(&0) || target.len() >= GuestPath::MAX_BYTES) {
            return Err(Invalid::new("symlink_target", "a path without NUL", symlink_target.unwrap_or_default()));
        }
        Ok(Self {
            path: GuestPath::new(Vec::from(body.path))?,
            kind,
            size: body.size,
            mode: body.mode & 0o7777,
            uid: body.uid,
            gid: body.gid,
            owner: body.owner,
            group: body.group,
            modified_nanos: body.modified_nanos,
            symlink_target,
        })
    }
}

/// Something happened in a watched directory.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct EventBody {
    #[n(0)]
    kind: u8,
    #[n(1)]
    name: ByteVec,
}

const EVENT_KINDS: [FileEventKind; 6] = [
    FileEventKind::Created,
    FileEventKind::Written,
    FileEventKind::Attributes,
    FileEventKind::Removed,
    FileEventKind::Renamed,
    FileEventKind::Overflowed,
];

impl From<&FileEvent> for EventBody {
    fn from(event: &FileEvent) -> Self {
        let kind = (0u8..).zip(EVENT_KINDS).find(|(_, kind)| *kind == event.kind).map_or(u8::MAX, |(number, _)| number);
        Self { kind, name: event.name.clone().into() }
    }
}

impl TryFrom<EventBody> for FileEvent {
    type Error = Invalid;
    fn try_from(body: EventBody) -> Result<Self, Invalid> {
        let kind = EVENT_KINDS.get(usize::from(body.kind)).copied();
        let kind = kind.ok_or_else(|| Invalid::new("event", "0 to 5", body.kind.to_string()))?;
        if body.name.contains(&0) || body.name.len() >= GuestPath::MAX_BYTES {
            return Err(Invalid::new("name", "a path without NUL", &body.name[..]));
        }
        Ok(Self { kind, name: body.name.into() })
    }
}

/// Something found.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct HitBody {
    #[n(0)]
    path: ByteVec,
    #[n(1)]
    line: Option<u64>,
    #[n(2)]
    text: ByteVec,
}

impl From<&SearchHit> for HitBody {
    fn from(hit: &SearchHit) -> Self {
        Self { path: hit.path.as_bytes().to_vec().into(), line: hit.line, text: hit.text.clone().into() }
    }
}

impl TryFrom<HitBody> for SearchHit {
    type Error = Invalid;
    fn try_from(body: HitBody) -> Result<Self, Invalid> {
        Ok(Self { path: GuestPath::new(Vec::from(body.path))?, line: body.line, text: body.text.into() })
    }
}
