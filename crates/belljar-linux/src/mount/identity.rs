//! Acting on files as somebody else, on this thread only, with all powers kept.
//!
//! An overlay keeps the credentials it was mounted with and uses them for what it makes on its own: its work directory, copies of
//! directories, marks of removed files. On a mount with shifted owners the host's root has no id at all, so it must be mounted by
//! whoever is root there.

use std::io;

#[repr(C)]
#[derive(Clone, Copy)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

const VERSION_3: u32 = 0x2008_0522;

/// While it lives, this thread makes and opens files as that user and group.
#[must_use = "the former identity is back as soon as this is dropped"]
pub struct FileIdentity {
    capabilities: [Sets; 2],
    user: libc::uid_t,
    group: libc::gid_t,
}

impl FileIdentity {
    /// Becomes the user and the group with this id, until dropped.
    pub fn assume(id: u32) -> io::Result<Self> {
        let capabilities = capabilities()?;
        // SAFETY: takes a number, concerns this thread only, and answers with the former one.
        let group = unsafe { libc::setfsgid(id) }.cast_unsigned();
        // SAFETY: as above.
        let user = unsafe { libc::setfsuid(id) }.cast_unsigned();
        let identity = Self { capabilities, user, group };
        // Becoming anybody but root took the powers over files away.
        set_capabilities(&identity.capabilities)?;
        Ok(identity)
    }
}

impl Drop for FileIdentity {
    fn drop(&mut self) {
        // SAFETY: puts back what was found, on this thread only.
        unsafe { libc::setfsuid(self.user) };
        // SAFETY: as above.
        unsafe { libc::setfsgid(self.group) };
        // Back to root restores them anyway; this puts back exactly what was found.
        let _ = set_capabilities(&self.capabilities);
    }
}

fn capabilities() -> io::Result<[Sets; 2]> {
    let mut header = Header { version: VERSION_3, pid: 0 };
    let mut sets = [Sets::default(); 2];
    // SAFETY: laid out as the kernel's version 3 expects, which writes two blocks.
    let answer = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()) };
    if answer == 0 { Ok(sets) } else { Err(io::Error::last_os_error()) }
}

fn set_capabilities(sets: &[Sets; 2]) -> io::Result<()> {
    let header = Header { version: VERSION_3, pid: 0 };
    // SAFETY: laid out as the kernel's version 3 expects, which reads two blocks.
    let answer = unsafe { libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
