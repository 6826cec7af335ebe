//! The homes of sandboxes on the host, each with its record.
//!
//! A home is claimed by making its directory, so that one id is never used twice; a record is replaced by renaming, so that a reader or a
//! crash sees the old one or the new one. It is synced to disk only for a paused sandbox: after a power cut there is no other kind.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use belljar_types::SandboxId;

use crate::config::Places;
use crate::error::HostError;
use crate::record::{Record, RecordState};

pub(crate) const FILE: &str = "record.json";
const NEXT: &str = "record.json.next";

/// Makes the home of a new sandbox.
pub(crate) fn claim(places: &Places, id: &SandboxId) -> Result<PathBuf, HostError> {
    let home = places.home(id);
    match DirBuilder::new().mode(0o700).create(&home) {
        Ok(()) => Ok(home),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(HostError::Exists { id: id.clone() }),
        Err(source) => Err(HostError::Record { operation: "make room for", id: id.clone(), source }),
    }
}

/// Writes or replaces a record.
pub(crate) fn write(places: &Places, record: &Record) -> Result<(), HostError> {
    let lasting = record.state == RecordState::Paused;
    let written = put(&places.home(&record.id), record, lasting);
    written.map_err(|source| HostError::Record { operation: "write", id: record.id.clone(), source })
}

/// Puts a record into a directory in place of the one that is there; `lasting`: it is on disk when this returns.
pub(crate) fn put(directory: &Path, record: &impl serde::Serialize, lasting: bool) -> io::Result<()> {
    let text = serde_json::to_vec(record)?;
    let next = directory.join(NEXT);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&next)?;
    file.write_all(&text)?;
    if lasting {
        file.sync_all()?;
    }
    fs::rename(next, directory.join(FILE))?;
    if lasting { fs::File::open(directory)?.sync_all() } else { Ok(()) }
}

/// Reads a record; `None` if there is none, or none that makes sense.
pub(crate) fn read(places: &Places, id: &SandboxId) -> Result<Option<Record>, HostError> {
    match fs::read(places.home(id).join(FILE)) {
        Ok(bytes) => Ok(parse(id, &bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(HostError::Record { operation: "read", id: id.clone(), source }),
    }
}

/// The ids of all homes, with a record or without.
pub(crate) fn ids(places: &Places) -> Result<Vec<SandboxId>, HostError> {
    names(&places.homes)
}

/// The ids that name something in this directory.
pub(crate) fn names<T: std::str::FromStr>(directory: &Path) -> Result<Vec<T>, HostError> {
    let failed = |source| HostError::Files { operation: "list", path: directory.to_owned(), source };
    let mut ids = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// Removes a home with all it holds; nothing of the sandbox may be left elsewhere.
pub(crate) fn forget(places: &Places, id: &SandboxId) -> Result<(), HostError> {
    match fs::remove_dir_all(places.home(id)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(HostError::Record { operation: "remove", id: id.clone(), source: error })
        }
        _ => Ok(()),
    }
}

fn parse(id: &SandboxId, bytes: &[u8]) -> Option<Record> {
    match serde_json::from_slice::<Record>(bytes) {
        Ok(record) if record.id == *id => Some(record),
        Ok(_) => {
            tracing::warn!(sandbox = %id, "the record in this home is of another sandbox; it is taken for none");
            None
        }
        Err(error) => {
            tracing::warn!(sandbox = %id, line = error.line(), column = error.column(), "a record cannot be read; it is taken for none");
            None
        }
    }
}
