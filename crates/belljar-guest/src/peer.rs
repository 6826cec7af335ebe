//! Sockets at which programs inside ask the agent, and who is at the other end, by the kernel's word.
//!
//! That travels with the first message (`SCM_CREDENTIALS`, which the kernel checks). `SO_PEERCRED` would be simpler, but gVisor (20240729) answers it with
//! the identity of whoever asks: everybody would be root.

use std::fs::Permissions;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, UCred, recvmsg, sendmsg,
};
use rustix::process::{getgid, getpid, getuid};

/// Opens a socket to which everybody inside may connect.
pub(crate) fn listen(path: &Path) -> io::Result<UnixListener> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
        std::fs::set_permissions(parent, Permissions::from_mode(0o755))?;
    }
    // A socket of an earlier run, if the filesystem was kept.
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    identify(&listener)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o666))?;
    Ok(listener)
}

/// Has the kernel say who sends. For a socket that listens and for those that it accepts.
pub(crate) fn identify(socket: impl AsFd) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_socket_passcred(socket, true)?)
}

/// What the first message brought.
pub(crate) struct First {
    /// Bytes of it.
    pub(crate) count: usize,
    /// Who sent it.
    pub(crate) uid: u32,
    /// Descriptors that came with it.
    pub(crate) fds: Vec<OwnedFd>,
}

/// Takes the first message. A sender who does not say who it is, is nobody.
pub(crate) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<First> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3), ScmCredentials(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let count = recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?.bytes;
    let (mut uid, mut fds) = (None, Vec::new());
    for message in ancillary.drain() {
        match message {
            RecvAncillaryMessage::ScmRights(some) => fds.extend(some),
            RecvAncillaryMessage::ScmCredentials(UCred { uid: sender, .. }) => uid = Some(sender.as_raw()),
            _ => {}
        }
    }
    Ok(First { count, uid: uid.ok_or(io::ErrorKind::PermissionDenied)?, fds })
}

/// Sends a first message: bytes that fit into an empty socket, descriptors, and who this is.
pub(crate) fn introduce(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3), ScmCredentials(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(fds));
    }
    ancillary.push(SendAncillaryMessage::ScmCredentials(UCred { pid: getpid(), uid: getuid(), gid: getgid() }));
    Ok(sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL)?)
}
