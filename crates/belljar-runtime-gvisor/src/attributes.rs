//! Extended attributes of a sandbox's files, which gVisor's kernel has none of. Its files are files of the host, in an overlay that only the gofer
//! still sees, and there attributes can be kept: they are on the sandbox's disk, so they count against its limit and are in its snapshots.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use belljar_guest_client::OutsideAttributes;
use belljar_linux::cgroup::Cgroup;
use belljar_linux::resolve::open_within;
use belljar_types::GuestPath;
use rustix::fs::{Mode, OFlags, XattrFlags};
use rustix::io::Errno;

use crate::find::{gofer_pid, is_member};
use crate::launch::Files;

/// The only attributes that users may have. The others mean something to the host, the overlay's own among them.
const OF_USERS: &str = "user.";
/// The longest value Linux has.
const LONGEST: usize = 64 << 10;

/// The attributes in one sandbox's root.
pub(crate) struct RootAttributes {
    files: Files,
    cgroup: Cgroup,
}

impl RootAttributes {
    pub(crate) fn new(files: Files, cgroup: Cgroup) -> Self {
        Self { files, cgroup }
    }

    /// The sandbox's root as the gofer sees it, volumes included.
    fn root(&self) -> io::Result<OwnedFd> {
        let gofer = gofer_pid(&self.files).ok_or(io::ErrorKind::InvalidData)?;
        let root = rustix::fs::open(format!("/proc/{gofer}/root"), OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        // Its number may have been given to another process since; that one is not in our group.
        if is_member(&self.cgroup, gofer) { Ok(root) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// A name for what `path` leads to: attributes cannot be had by a descriptor that was opened without touching the file.
    fn find(&self, path: &GuestPath) -> io::Result<(OwnedFd, String)> {
        let path = Path::new(std::ffi::OsStr::from_bytes(path.as_bytes()));
        let found = open_within(self.root()?, path, OFlags::PATH)?;
        let name = format!("/proc/self/fd/{}", found.as_raw_fd());
        Ok((found, name))
    }
}

impl OutsideAttributes for RootAttributes {
    fn keeps(&self, attribute: &str) -> bool {
        attribute.starts_with(OF_USERS)
    }

    fn get(&self, path: &GuestPath, attribute: &str) -> io::Result<Option<Vec<u8>>> {
        let (_found, name) = self.find(path)?;
        let mut value = vec![0; LONGEST];
        match rustix::fs::getxattr(&name, attribute, &mut value) {
            Ok(length) => {
                value.truncate(length);
                Ok(Some(value))
            }
            Err(Errno::NODATA) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    fn set(&self, path: &GuestPath, attribute: &str, value: Option<&[u8]>) -> io::Result<()> {
        let (_found, name) = self.find(path)?;
        match value.map_or_else(
            || rustix::fs::removexattr(&name, attribute),
            |value| rustix::fs::setxattr(&name, attribute, value, XattrFlags::empty()),
        ) {
            Err(Errno::NODATA) if value.is_none() => Ok(()),
            other => Ok(other?),
        }
    }
}
