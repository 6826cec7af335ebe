//! The signed head of a log: how far it goes. It is written after the lines it covers are on the disk and before anybody is told that they are,
//! so that after `kill -9` it is never ahead of the log and never behind what was acknowledged.
//!
//! One sector, written in place: a disk writes it whole or not at all. It is not synced with every group; after a loss of power it may be a
//! little behind, which costs nothing but that the events after it are held by the chain alone until the next one.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use belljar_ports::{AuditError, Checkpoint};
use belljar_types::{ProjectId, Timestamp};
use ring::signature::{ED25519, UnparsedPublicKey};

use crate::chain::End;
use crate::key::SigningKey;
use crate::segment;

const NAME: &str = "head";
/// A sector; the JSON is padded with spaces.
const SIZE: usize = 512;

/// How far the logs below a directory go. One whose head cannot be read is left out: `verify` tells of it.
pub(crate) fn all(root: &Path) -> Result<BTreeMap<ProjectId, u64>, AuditError> {
    let mut ends = BTreeMap::new();
    for (project, directory) in projects(root)? {
        if let Ok(Some(checkpoint)) = read(&directory)? {
            ends.insert(project, checkpoint.sequence);
        }
    }
    Ok(ends)
}

/// Logs that may go farther than their heads: those that were written to after it.
pub(crate) fn perhaps_behind(root: &Path) -> Result<Vec<ProjectId>, AuditError> {
    let mut behind = Vec::new();
    for (project, directory) in projects(root)? {
        let changed = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
        let last = segment::list(&directory)?.pop().and_then(|(_, path)| changed(&path));
        // Within one tick of the clock both have the same time.
        if last.is_some() && last >= changed(&directory.join(NAME)) {
            behind.push(project);
        }
    }
    Ok(behind)
}

fn projects(root: &Path) -> Result<Vec<(ProjectId, PathBuf)>, AuditError> {
    let failed = |source| AuditError::Disk { operation: "list", path: root.to_owned(), source };
    let mut projects = Vec::new();
    for entry in std::fs::read_dir(root).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let project = entry.file_name().to_str().and_then(|name| name.parse().ok());
        projects.extend(project.filter(|_| entry.path().is_dir()).map(|project| (project, entry.path())));
    }
    Ok(projects)
}

/// The file `head` of a project.
pub(crate) struct Head {
    file: File,
    path: PathBuf,
}

impl Head {
    /// Opens the head of a log; a new log gets one before it gets anything else.
    pub(crate) fn open_or_make(directory: &Path) -> Result<Self, AuditError> {
        let path = directory.join(NAME);
        let failed = |source| AuditError::Disk { operation: "open the head of", path: path.clone(), source };
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(failed)?;
        Ok(Self { file, path })
    }

    /// Writes where the log ends.
    pub(crate) fn write(&self, checkpoint: &Checkpoint) -> Result<(), AuditError> {
        let mut sector = serde_json::to_vec(checkpoint).map_err(|error| AuditError::Encode(error.into()))?;
        sector.resize(SIZE - 1, b' ');
        sector.push(b'\n');
        let failed = |source| AuditError::Disk { operation: "write the head of", path: self.path.clone(), source };
        self.file.write_all_at(&sector, 0).map_err(failed)
    }

    /// Puts it on the disk: when a log is made, and when a segment is full.
    pub(crate) fn sync(&self) -> Result<(), AuditError> {
        self.file.sync_all().map_err(|source| AuditError::Disk { operation: "sync the head of", path: self.path.clone(), source })
    }
}

/// The head of a log as it stands; `None` if there is none. What cannot be read or was not signed is told in words.
pub(crate) fn read(directory: &Path) -> Result<Result<Option<Checkpoint>, String>, AuditError> {
    let path = directory.join(NAME);
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Ok(None)),
        Err(source) => return Err(AuditError::Disk { operation: "read the head of", path, source }),
    };
    if text.is_empty() {
        return Ok(Ok(None));
    }
    Ok(match serde_json::from_slice::<Checkpoint>(text.trim_ascii()) {
        Err(_) => Err("its head cannot be read: it was changed".to_owned()),
        Ok(checkpoint) if text.len() != SIZE => {
            Err(format!("its head (event {}) has the wrong length: it was changed", checkpoint.sequence))
        }
        Ok(checkpoint) => check_signature(&checkpoint).map(|()| Some(checkpoint)),
    })
}

/// Signs for all of a log up to here.
pub(crate) fn sign(key: &SigningKey, project: &ProjectId, end: &End) -> Checkpoint {
    let at = Timestamp::now();
    let signature = key.sign(&signed_text(project, end.sequence, &end.hash, at));
    let (project, hash, public_key) = (project.clone(), end.hash.clone(), key.public().to_owned());
    Checkpoint { project, sequence: end.sequence, hash, at, public_key, signature }
}

/// Whether a checkpoint was signed by the key it names. Whether that is the right key is for whoever asks to know.
pub fn check_signature(checkpoint: &Checkpoint) -> Result<(), String> {
    let broken = || format!("the signature of the checkpoint at event {} does not hold: it was changed", checkpoint.sequence);
    let public = from_hex(&checkpoint.public_key).ok_or_else(broken)?;
    let signature = from_hex(&checkpoint.signature).ok_or_else(broken)?;
    let message = signed_text(&checkpoint.project, checkpoint.sequence, &checkpoint.hash, checkpoint.at);
    UnparsedPublicKey::new(&ED25519, public).verify(&message, &signature).map_err(|_| broken())
}

fn signed_text(project: &ProjectId, sequence: u64, hash: &str, at: Timestamp) -> Vec<u8> {
    format!("belljar audit checkpoint 1\n{project}\n{sequence}\n{hash}\n{}\n", at.0).into_bytes()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}
