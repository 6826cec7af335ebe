//! Walks through a tree a few entries at a time, so that neither memory nor a thread is held while the client is slow.

use std::fs::{DirEntry, ReadDir};
use std::os::unix::ffi::OsStrExt;

use belljar_guest_protocol::Failure;
use belljar_types::{FileInfo, GuestPath};

use super::describe::{Describer, Names};
use super::{Actor, as_os, join, refused};

/// Directories deeper than this are told but not entered: each open one costs a descriptor.
const DEEPEST: usize = 200;

/// A place in a tree.
pub(super) struct Walk {
    open: Vec<(Vec<u8>, ReadDir)>,
    depth: usize,
}

impl Walk {
    /// Begins in a directory; goes `depth` levels down, links not followed.
    pub(super) fn begin(root: &[u8], depth: u32) -> Result<Self, Failure> {
        let entries = std::fs::read_dir(as_os(root)).map_err(|error| refused(root, &error))?;
        let depth = usize::try_from(depth).unwrap_or(DEEPEST).clamp(1, DEEPEST);
        Ok(Self { open: vec![(root.to_vec(), entries)], depth })
    }

    /// The next entry with its path. Entries that vanish or cannot be looked at are left out.
    pub(super) fn next(&mut self) -> Option<(Vec<u8>, DirEntry)> {
        loop {
            let (directory, entries) = self.open.last_mut()?;
            match entries.next() {
                None => drop(self.open.pop()),
                Some(Err(_)) => drop(self.open.pop()),
                Some(Ok(entry)) => {
                    let path = join(directory, entry.file_name().as_bytes());
                    if path.len() >= GuestPath::MAX_BYTES {
                        continue;
                    }
                    return Some((path, entry));
                }
            }
        }
    }

    /// Goes on inside a directory that was just given, if it is not too deep and may be read.
    pub(super) fn enter(&mut self, path: &[u8], entry: &DirEntry) {
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory
            && self.open.len() < self.depth
            && let Ok(entries) = std::fs::read_dir(as_os(path))
        {
            self.open.push((path.to_vec(), entries));
        }
    }
}

/// A listing under way.
pub(crate) struct ListTask {
    walk: Walk,
    left: u32,
    names: Names,
}

impl ListTask {
    const AT_ONCE: usize = 512;
    /// Bytes of names and targets in one batch, well below a frame.
    const BYTES_AT_ONCE: usize = 128 << 10;

    pub(crate) fn begin(root: &[u8], depth: u32, max_entries: u32) -> Result<Self, Failure> {
        Ok(Self { walk: Walk::begin(root, depth)?, left: max_entries, names: Names::default() })
    }

    /// The next entries; none when all were given.
    pub(crate) fn step(&mut self, actor: &Actor) -> Vec<FileInfo> {
        let mut found = Vec::new();
        let mut bytes = 0;
        let mut describer = Describer::with_names(&actor.users, std::mem::take(&mut self.names));
        while self.left > 0 && found.len() < Self::AT_ONCE && bytes < Self::BYTES_AT_ONCE {
            let Some((path, entry)) = self.walk.next() else { break };
            let Ok(metadata) = entry.metadata() else { continue };
            let Ok(info) = describer.describe(&path, &metadata) else { continue };
            bytes += 128 + path.len() + info.symlink_target.as_ref().map_or(0, Vec::len);
            found.push(info);
            self.left -= 1;
            self.walk.enter(&path, &entry);
        }
        self.names = describer.names;
        found
    }
}
