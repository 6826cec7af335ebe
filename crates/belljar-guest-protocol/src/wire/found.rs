//! What is answered about files. The agent may be a liar, so each body becomes a value only if it is one.

use belljar_types::{FileEvent, FileEventKind, FileInfo, FileKind, GuestPath, Invalid, SearchHit};
use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};

/// The value of an extended attribute.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct XattrValue {
    /// The value, if there is one.
    #[n(0)]
    pub value: Option<ByteVec>,
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
    #[n(10)]
    attributes: Option<bool>,
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
            attributes: info.attributes,
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
            attributes: body.attributes,
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
