//! Writing files in place.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{IoSlice, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use belljar_guest_protocol::Failure;
use belljar_types::WriteOptions;
use bytes::Bytes;
use rustix::process::{Gid, Uid};

use super::tree::{content_metadata, make_directories, open_flags};
use super::{Actor, as_os, refused};

/// A longer file is emptied when it is opened: one of the template would first be copied for nothing, and room for it may be short.
const SHORTENED_AT_MOST: u64 = 16 << 20;

/// A file that is being written.
pub(crate) struct Writing {
    file: File,
    path: Vec<u8>,
    /// Whether there is still a byte of what was there before.
    remnant: bool,
}

impl Writing {
    /// Puts pieces after what was written before.
    pub(crate) fn append(&mut self, pieces: &[Bytes]) -> Result<(), Failure> {
        let failed = |error: std::io::Error| refused(&self.path, &error);
        let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        let mut rest = slices.as_mut_slice();
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            match self.file.write_vectored(rest) {
                Ok(0) => return Err(failed(std::io::ErrorKind::WriteZero.into())),
                Ok(count) => {
                    self.remnant = false;
                    IoSlice::advance_slices(&mut rest, count);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }

    /// Takes away the `length` that was there before, but for a byte that is written over. Some filesystems (btrfs) bring a file that was once emptied to the disk
    /// when it is closed, which takes as long as writing it did; one that is written again and again would go there every time.
    fn shorten(&mut self, length: u64) -> std::io::Result<()> {
        self.remnant = length > 1;
        self.file.set_len(self.remnant.into())
    }

    /// Closes the file, from when on it can be executed, and says what it is like. May take as long as writing.
    pub(crate) fn close(mut self) -> Result<(Vec<u8>, Metadata), Failure> {
        let emptied = if std::mem::take(&mut self.remnant) { self.file.set_len(0) } else { Ok(()) };
        let metadata = emptied.and_then(|()| self.file.metadata()).map_err(|error| refused(&self.path, &error))?;
        Ok((std::mem::take(&mut self.path), metadata))
    }
}

impl Drop for Writing {
    /// Nothing came in time, or nothing could be written: then nothing is there.
    fn drop(&mut self) {
        if self.remnant {
            let _read_only_now = self.file.set_len(0);
        }
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
    let shorten =
        anew && std::fs::metadata(as_os(path)).is_ok_and(|there| there.is_file() && (1..=SHORTENED_AT_MOST).contains(&there.len()));
    let mut open = OpenOptions::new();
    open.write(true).mode(options.mode.unwrap_or(0o644)).custom_flags(open_flags());
    if options.create_new {
        open.create_new(true);
    } else {
        open.create(true).truncate(anew && !shorten);
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
    let mut writing = Writing { file, path: path.to_vec(), remnant: false };
    if shorten {
        writing.shorten(metadata.len()).map_err(failed)?;
    }
    Ok(writing)
}
