//! Opening, making and removing.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

use belljar_guest_protocol::Failure;
use belljar_types::{ByteRange, FileInfo};
use bytes::Bytes;
use rustix::fs::OFlags;

use super::{Actor, as_os, refused};

/// A file that is being read, and how much of it is still wanted.
pub(crate) struct Reading {
    pub(crate) file: File,
    pub(crate) left: u64,
    pub(crate) info: FileInfo,
}

impl Reading {
    /// The next piece, of `most` bytes unless the file ends before.
    pub(crate) fn piece(&mut self, most: usize) -> Result<Bytes, Failure> {
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(most);
        let mut piece = Vec::with_capacity(wanted);
        // Files in /proc give a little at a time; a network filesystem too.
        let read = (&self.file).take(wanted as u64).read_to_end(&mut piece);
        read.map_err(|error| refused(self.info.path.as_bytes(), &error))?;
        // Less than was wanted is the end.
        self.left = if piece.len() < wanted { 0 } else { self.left - wanted as u64 };
        Ok(piece.into())
    }
}

/// Not blocking: opening a pipe that nobody writes to must not hold a thread for ever.
pub(super) fn open_flags() -> i32 {
    OFlags::NONBLOCK.bits().cast_signed() | OFlags::NOCTTY.bits().cast_signed()
}

/// Opens a file for reading, whatever it is.
pub(super) fn open_without_waiting(path: &[u8]) -> std::io::Result<File> {
    OpenOptions::new().read(true).custom_flags(open_flags()).open(as_os(path))
}

/// Opens a file at the start of a range. Sizes are not believed: files in /proc say 0.
pub(crate) fn open_for_reading(actor: &Actor, path: &[u8], range: ByteRange) -> Result<Reading, Failure> {
    let failed = |error: std::io::Error| refused(path, &error);
    let mut file = open_without_waiting(path).map_err(failed)?;
    let info = actor.describer().describe(path, &content_metadata(path, &file)?)?;
    if range.offset > 0 {
        file.seek(SeekFrom::Start(range.offset)).map_err(failed)?;
    }
    Ok(Reading { file, left: range.length.unwrap_or(u64::MAX), info })
}

/// What was opened; refuses what has no content.
pub(super) fn content_metadata(path: &[u8], file: &File) -> Result<Metadata, Failure> {
    let metadata = file.metadata().map_err(|error| refused(path, &error))?;
    let file_type = metadata.file_type();
    if file_type.is_dir() {
        return Err(refused(path, &rustix::io::Errno::ISDIR.into()));
    }
    if file_type.is_fifo() || file_type.is_socket() {
        return Err(Failure::refused(22, format!("{}: is a pipe or a socket, not a file", belljar_types::escape_untrusted(path))));
    }
    Ok(metadata)
}

/// Makes a directory and its parents. Says whether it was made.
pub(crate) fn make_directories(path: &Path) -> Result<bool, Failure> {
    let failed = |path: &Path, error: &std::io::Error| refused(path.as_os_str().as_encoded_bytes(), error);
    match DirBuilder::new().mode(0o755).create(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // Each step takes a part off a path that is shorter than 4096 bytes.
            let parent = path.parent().ok_or_else(|| failed(path, &error))?;
            make_directories(parent)?;
            match DirBuilder::new().mode(0o755).create(path) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(failed(path, &error)),
                made => Ok(made.is_ok()),
            }
        }
        Err(error) if path.is_dir() => {
            let _there = error;
            Ok(false)
        }
        Err(error) => Err(failed(path, &error)),
    }
}

/// Removes a file, or a directory with all that it holds; links are removed, not followed.
pub(crate) fn remove(path: &[u8]) -> Result<(), Failure> {
    let failed = |error: std::io::Error| refused(path, &error);
    let metadata = std::fs::symlink_metadata(as_os(path)).map_err(failed)?;
    if metadata.is_dir() { std::fs::remove_dir_all(as_os(path)) } else { std::fs::remove_file(as_os(path)) }.map_err(failed)
}
