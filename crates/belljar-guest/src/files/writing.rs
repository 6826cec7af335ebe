//! Writing files in place.
//!
//! A file that is written anew is written over from its beginning and then cut to its new length. To shorten it first costs as much again as writing
//! it (btrfs, 4 MiB that are in memory: 3 ms to write over, 6 to shorten to a byte and write); to empty it shows readers an empty file besides, and makes
//! btrfs bring it to the disk when it is closed.

use std::fs::{File, OpenOptions};
use std::io::{IoSlice, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use belljar_guest_protocol::Failure;
use belljar_linux::attributes;
use belljar_types::{FileInfo, WriteOptions};
use bytes::Bytes;
use rustix::process::{Gid, Uid};

use super::tree::{content_metadata, make_directories, open_flags};
use super::{Actor, Describer, as_os, refused};
use crate::users::Users;

/// A longer file is emptied when it is opened: one of the template would first be copied for nothing, and room for both may be short.
const KEPT_AT_MOST: u64 = 16 << 20;

/// A file that is being written.
pub(crate) struct Writing {
    file: File,
    path: Vec<u8>,
    /// How far it was written.
    written: u64,
    /// Where what was there before ends, if that is to go.
    before: u64,
    tell_attributes: bool,
}

impl Writing {
    /// Puts pieces after what was written before.
    pub(crate) fn append(&mut self, pieces: &[Bytes]) -> Result<(), Failure> {
        let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        let mut rest = slices.as_mut_slice();
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            match self.file.write_vectored(rest) {
                Ok(0) => return Err(self.failed(&std::io::ErrorKind::WriteZero.into())),
                Ok(count) => {
                    self.written += count as u64;
                    IoSlice::advance_slices(&mut rest, count);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(&error)),
            }
        }
        Ok(())
    }

    fn failed(&self, error: &std::io::Error) -> Failure {
        refused(&self.path, error)
    }

    /// Takes away what is left of what was there before.
    fn cut(&mut self) -> std::io::Result<()> {
        let old = std::mem::take(&mut self.before);
        if old > self.written { self.file.set_len(self.written) } else { Ok(()) }
    }

    /// Closes the file, from when on it can be executed, and says what it is like. May take as long as writing.
    pub(crate) fn close(mut self, users: &Users) -> Result<FileInfo, Failure> {
        let metadata = self.cut().and_then(|()| self.file.metadata()).map_err(|error| self.failed(&error))?;
        let attributes = if self.tell_attributes { attributes::any_of(&self.file).ok() } else { None };
        let info = Describer::new(users).describe(&self.path, &metadata)?;
        Ok(FileInfo { attributes, ..info })
    }
}

impl Drop for Writing {
    /// Not all came, or not all could be written: then what came is there, and nothing of before.
    fn drop(&mut self) {
        let _read_only_now = self.cut();
    }
}

/// Opens a file for writing in place.
pub(crate) fn open_for_writing(actor: &Actor, path: &[u8], options: &WriteOptions) -> Result<Writing, Failure> {
    let failed = |error: std::io::Error| refused(path, &error);
    if options.make_parents
        && let Some(parent) = Path::new(as_os(path)).parent()
    {
        make_directories(parent)?;
    }
    let anew = options.offset.is_none();
    let keep = anew && std::fs::metadata(as_os(path)).is_ok_and(|there| there.is_file() && (1..=KEPT_AT_MOST).contains(&there.len()));
    let mut open = OpenOptions::new();
    open.write(true).mode(options.mode.unwrap_or(0o644)).custom_flags(open_flags());
    if options.create_new {
        open.create_new(true);
    } else {
        open.create(true).truncate(anew && !keep);
    }
    let mut file = open.open(as_os(path)).map_err(failed)?;
    if options.claim {
        // Somebody else's file stays theirs; whoever cares looks at the answer.
        let (uid, gid) = (Uid::from_raw(actor.user.uid), Gid::from_raw(actor.user.gid));
        let _theirs = rustix::fs::fchown(&file, Some(uid), Some(gid));
    }
    let metadata = content_metadata(path, &file)?;
    if let Some(offset) = options.offset {
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
    }
    let before = if keep { metadata.len() } else { 0 };
    Ok(Writing { file, path: path.to_vec(), written: 0, before, tell_attributes: options.tell_attributes })
}
