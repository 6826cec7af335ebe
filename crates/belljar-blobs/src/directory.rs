//! Blobs as files, made beside and moved into place.
//!
//! A file on its way has a `#` in its name, which no key has. The directory belongs to one server, so whatever has one when it is opened was
//! left by a crash.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use object_store::local::LocalFileSystem;

use crate::OpenError;
use crate::place::{Backend, PlacedBlobs};

/// Opens the directory, which is made if it is not there, and removes what was half written.
pub fn open_directory(directory: &Path) -> Result<PlacedBlobs, OpenError> {
    let failed = |source: io::Error| OpenError::Directory { path: directory.to_owned(), source };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    remove_half_written(directory).map_err(failed)?;
    let files = LocalFileSystem::new_with_prefix(directory).map_err(|error| failed(error.into()))?;
    Ok(PlacedBlobs::new(Backend::Directory(files.with_fsync(true))))
}

fn remove_half_written(directory: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_half_written(&entry.path())?;
        } else if entry.file_name().as_encoded_bytes().contains(&b'#') {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
