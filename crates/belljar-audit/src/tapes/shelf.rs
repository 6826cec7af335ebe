//! The tapes as files: which of them are too many, found without opening any, and their removal.

use std::collections::HashSet;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use belljar_ports::KeptTapes;

struct Kept {
    path: PathBuf,
    changed: SystemTime,
    bytes: u64,
}

/// The tapes that have to go: all that are too old, then the oldest; none that is `busy`.
pub(super) fn superfluous(root: &Path, keep: KeptTapes, busy: &HashSet<PathBuf>, now: SystemTime) -> io::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for project in entries(root)? {
        for sandbox in entries(&project)? {
            for path in entries(&sandbox)? {
                match std::fs::symlink_metadata(&path) {
                    Ok(about) if about.is_file() => all.push(Kept { path, changed: about.modified()?, bytes: about.len() }),
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
    all.sort_by_key(|tape| tape.changed);
    let mut left: u64 = all.iter().map(|tape| tape.bytes).sum();
    let mut superfluous = Vec::new();
    for tape in all.into_iter().filter(|tape| !busy.contains(&tape.path)) {
        // A clock that was set back makes nothing old.
        let age = now.duration_since(tape.changed).unwrap_or_default();
        if age <= keep.age && left <= keep.bytes {
            break;
        }
        left -= tape.bytes;
        superfluous.push(tape.path);
    }
    Ok(superfluous)
}

/// Removes a tape, and the directories of its sandbox and project if nothing else is in them.
pub(super) fn remove(tape: &Path) -> io::Result<()> {
    match std::fs::remove_file(tape) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    for directory in tape.ancestors().skip(1).take(2) {
        match std::fs::remove_dir(directory) {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::NotFound) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// What is in a directory; nothing if there is none.
fn entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    match std::fs::read_dir(directory) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
