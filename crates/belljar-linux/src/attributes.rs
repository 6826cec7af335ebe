//! Extended attributes of files, with "there is none" as an answer instead of an error.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::XattrFlags;
use rustix::io::Errno;

/// The longest value Linux has.
const LONGEST: usize = 64 << 10;

/// The value of an attribute, if it is there.
pub fn get(path: &Path, name: &str) -> io::Result<Option<Vec<u8>>> {
    let mut value = vec![0; LONGEST];
    match rustix::fs::getxattr(path, name, &mut value) {
        Ok(length) => {
            value.truncate(length);
            Ok(Some(value))
        }
        Err(Errno::NODATA) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Whether a file has any that we may see.
pub fn any(path: &Path) -> io::Result<bool> {
    Ok(rustix::fs::listxattr_query(path)? > 0)
}

/// The same of a file that is open.
pub fn any_of(file: impl AsFd) -> io::Result<bool> {
    Ok(rustix::fs::flistxattr_query(file)? > 0)
}

/// Sets an attribute, or sees that it is not there.
pub fn set(path: &Path, name: &str, value: Option<&[u8]>) -> io::Result<()> {
    let Some(value) = value else {
        return match rustix::fs::removexattr(path, name) {
            Ok(()) | Err(Errno::NODATA) => Ok(()),
            Err(errno) => Err(errno.into()),
        };
    };
    Ok(rustix::fs::setxattr(path, name, value, XattrFlags::empty())?)
}
