//! Files with keys in them: there whole or not at all after any crash, and for their owner's eyes only.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes a file over the one before. It gets its name when it is on the disk, and the name is on the disk when this returns.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut beside = OsString::from(".");
    beside.push(path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    beside.push(".new");
    let beside = path.with_file_name(beside);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&beside, path)?;
    // A bare name lies in the directory one is in.
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_only_its_owner_reads_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        // What a writer that died left beside it is in nobody's way.
        std::fs::write(directory.path().join(".key.new"), "half of a longer text").unwrap();
        for text in ["first", "2nd"] {
            write_whole(&path, text.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        assert!(write_whole(Path::new("/"), b"").is_err());
    }
}
