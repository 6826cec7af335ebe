//! What is asked about files: the bodies of requests, with the path as bytes and the user who acts.

use belljar_types::{GuestPath, Invalid, ListOptions, SearchQuery, WriteOptions};
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
    /// Take over what exists. An older agent does not know it; one that hears nothing of it does not do it.
    #[n(6)]
    pub claim: Option<bool>,
    /// Say whether it has extended attributes. As with the one before.
    #[n(7)]
    pub tell_attributes: Option<bool>,
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
            claim: options.claim.then_some(true),
            tell_attributes: options.tell_attributes.then_some(true),
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
            claim: self.claim.unwrap_or_default(),
            tell_attributes: self.tell_attributes.unwrap_or_default(),
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
