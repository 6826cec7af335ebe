//! Where an image's parts lie: a directory, a tar file, or (in [`crate::registry`]) a registry. Each part has a name; a layout's blobs
//! are `blobs/sha256/<digits>`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::OciError;
use super::model::BlobDigest;
use crate::ImageError;
use crate::archive::tree::{Tree, beneath};
use crate::archive::{ArchiveError, ArchiveLimits, EntryPath, MemberKind, Refusal, TarReader};
use crate::digest::HashingReader;

/// No manifest or configuration is larger; registries refuse larger ones too.
pub(crate) const DOCUMENT_MAX: u64 = 4 << 20;
/// Parts in an image's tar file.
const PARTS_MAX: usize = 100_000;

/// Something that holds an image's parts.
pub(crate) trait Parts {
    /// Opens a part, or says that it is not there.
    fn open<'a>(&'a self, name: &str) -> Result<Option<Box<dyn Read + 'a>>, ImageError>;
}

/// Reads a small document, and checks its digest if it has one.
pub(crate) fn document(parts: &dyn Parts, name: &str, digest: Option<&BlobDigest>) -> Result<Vec<u8>, ImageError> {
    let part = || name.to_owned();
    let reader = parts.open(name)?.ok_or_else(|| OciError::Missing { part: part() })?;
    let mut hashing = HashingReader::new(reader.take(DOCUMENT_MAX + 1));
    let mut bytes = Vec::new();
    hashing.read_to_end(&mut bytes).map_err(|source| OciError::Read { part: part(), source })?;
    let (hex, size) = hashing.finish();
    if size > DOCUMENT_MAX {
        return Err(OciError::TooLarge { part: part(), limit: DOCUMENT_MAX }.into());
    }
    match digest {
        Some(expected) if expected.hex() != hex => {
            let found = BlobDigest::of_hex(&hex).to_string();
            Err(OciError::Digest { part: part(), expected: expected.to_string(), found }.into())
        }
        _ => Ok(bytes),
    }
}

/// Parses a document.
pub(crate) fn parse<T: serde::de::DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, OciError> {
    serde_json::from_slice(bytes).map_err(|source| OciError::Parse { part: name.to_owned(), source })
}

/// Parts in a directory.
pub(crate) struct DirectoryParts(Tree);

impl DirectoryParts {
    pub(crate) fn open(path: &Path) -> Result<Self, OciError> {
        Tree::open(path).map(Self).map_err(|source| OciError::Open { path: path.to_owned(), source })
    }
}

impl Parts for DirectoryParts {
    fn open<'a>(&'a self, name: &str) -> Result<Option<Box<dyn Read + 'a>>, ImageError> {
        // A layout from a stranger may hold links to the host's files.
        match rustix::fs::openat2(self.0.root(), name, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty(), beneath()) {
            Ok(file) => Ok(Some(Box::new(File::from(file)))),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(OciError::Read { part: name.to_owned(), source: error.into() }.into()),
        }
    }
}

/// Parts in a plain tar file, found again by their position.
#[derive(Debug)]
pub(crate) struct TarParts {
    file: File,
    parts: HashMap<Vec<u8>, Part>,
}

#[derive(Debug, Clone)]
enum Part {
    At {
        offset: u64,
        size: u64,
    },
    /// Old versions of docker save a layer once and link to it from the other places.
    SameAs(Vec<u8>),
}

impl TarParts {
    /// Reads the tar once to learn where its parts are.
    pub(crate) fn index(file: File, limits: &ArchiveLimits) -> Result<Self, ArchiveError> {
        let mut archive = TarReader::new(Positioned { file: &file, position: 0 });
        let mut parts = HashMap::new();
        while let Some(member) = archive.next()? {
            let refused = |reason| ArchiveError::Refused { entry: member.path.clone(), reason };
            let path = EntryPath::parse(&member.path, limits).map_err(refused)?.as_bytes().to_vec();
            let part = match member.kind {
                MemberKind::File { sparse: None } => Part::At { offset: archive.input().position, size: member.size },
                MemberKind::Symlink => Part::SameAs(target(&path, &member.link)),
                MemberKind::HardLink => Part::SameAs(target(b"", &member.link)),
                _ => continue,
            };
            if parts.len() == PARTS_MAX {
                return Err(ArchiveError::Archive(Refusal::Entries { limit: PARTS_MAX as u64 }));
            }
            parts.insert(path, part);
        }
        Ok(Self { file, parts })
    }

    /// Whether there is such a part.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.parts.contains_key(name.as_bytes())
    }
}

impl Parts for TarParts {
    fn open<'a>(&'a self, name: &str) -> Result<Option<Box<dyn Read + 'a>>, ImageError> {
        let found = match self.parts.get(name.as_bytes()) {
            Some(Part::SameAs(other)) => self.parts.get(other),
            found => found,
        };
        Ok(match found {
            Some(Part::At { offset, size }) => Some(Box::new(Positioned { file: &self.file, position: *offset }.take(*size))),
            Some(Part::SameAs(_)) | None => None,
        })
    }
}

/// Where a link leads, by its text alone: it is only a key to look up.
fn target(from: &[u8], link: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = from.split(|b| *b == b'/').collect();
    parts.pop();
    for part in link.split(|b| *b == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join(&b'/')
}

struct Positioned<'a> {
    file: &'a File,
    position: u64,
}

impl Read for Positioned<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}
