//! Extended attributes of a sandbox's files, which gVisor's kernel has none of. Its files are files of the host, in an overlay that only the gofer
//! still sees, and there attributes can be kept: they are on the sandbox's disk, so they count against its limit and are in its snapshots.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use belljar_guest_client::OutsideAttributes;
use belljar_linux::attributes;
use belljar_linux::cgroup::Cgroup;
use belljar_linux::resolve::open_within;
use belljar_types::GuestPath;
use rustix::fs::{Mode, OFlags};

use crate::find::{gofer_pid, is_member};
use crate::launch::Files;

/// The only attributes that users may have. The others mean something to the host, the overlay's own among them.
const OF_USERS: &str = "user.";

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
    fn find(&self, path: &GuestPath) -> io::Result<(OwnedFd, PathBuf)> {
        let path = Path::new(std::ffi::OsStr::from_bytes(path.as_bytes()));
        let found = open_within(self.root()?, path, OFlags::PATH)?;
        let name = PathBuf::from(format!("/proc/self/fd/{}", found.as_raw_fd()));
        Ok((found, name))
    }
}

impl OutsideAttributes for RootAttributes {
    fn keeps(&self, attribute: &str) -> bool {
        attribute.starts_with(OF_USERS)
    }

    fn any(&self, path: &GuestPath) -> io::Result<bool> {
        let (_found, name) = self.find(path)?;
        attributes::any(&name)
    }

    fn get(&self, path: &GuestPath, attribute: &str) -> io::Result<Option<Vec<u8>>> {
        let (_found, name) = self.find(path)?;
        attributes::get(&name, attribute)
    }

    fn set(&self, path: &GuestPath, attribute: &str, value: Option<&[u8]>) -> io::Result<()> {
        let (_found, name) = self.find(path)?;
        attributes::set(&name, attribute, value)
    }
}
