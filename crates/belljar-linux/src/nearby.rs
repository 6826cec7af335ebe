//! Stream sockets between processes of one kernel, at a name in a directory: for a peer that nobody trusts.
//!
//! Whoever sends on such a socket can send descriptors along. Whoever does not want them is still the one to close them, and closing can
//! take as long as their owner likes: a TCP connection that lingers, for one. So none are let in, which Linux can since 6.16.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

/// The kernel's own is 208 KiB, less than one frame with its overhead; it gives at most what `wmem_max` says.
const SENT_AHEAD: usize = 1 << 20;
/// Connections that may wait to be accepted.
const WAITING: i32 = 128;
const SO_PASSRIGHTS: libc::c_int = 83;

/// Listens at a name in a directory, which must be free.
pub fn listen(directory: &Path, name: &str) -> io::Result<UnixListener> {
    let directory = open(directory)?;
    let listener = UnixListener::bind(within(&directory, name))?;
    rustix::net::listen(&listener, WAITING)?;
    Ok(listener)
}

/// Connects to a name in a directory. Does not wait: if too many wait there already, that is an error.
pub fn connect(directory: &Path, name: &str) -> io::Result<UnixStream> {
    let directory = open(directory)?;
    let socket = socket()?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(within(&directory, name))?)?;
    Ok(socket.into())
}

/// Whether this kernel has sockets that let no descriptors in.
pub fn available() -> io::Result<bool> {
    match socket() {
        Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => Ok(false),
        other => other.map(|_| true),
    }
}

fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    refuse_descriptors(&socket)?;
    widen(&socket)?;
    Ok(socket)
}

/// Lets this end send so much ahead that the other has something to do while this one waits for its turn.
pub fn widen(socket: impl AsFd) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_socket_send_buffer_size(socket, SENT_AHEAD)?)
}

fn refuse_descriptors(socket: impl AsFd) -> io::Result<()> {
    let (no, length) = (0 as libc::c_int, size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: an open descriptor, and a number with its own length.
    match unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), libc::SOL_SOCKET, SO_PASSRIGHTS, (&raw const no).cast(), length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn open(directory: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// A socket's name has room for 108 bytes, a directory's path for many more.
fn within(directory: &OwnedFd, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", directory.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use std::io::{IoSlice, Read, Write};
    use std::mem::MaybeUninit;
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

    use super::*;

    const LINGER: Duration = Duration::from_secs(2);

    /// A directory for a door. Before Linux 6.16 there is nothing to try: such a socket is not made, and agents are reached over the network.
    fn place() -> Option<tempfile::TempDir> {
        if !available().unwrap() {
            eprintln!("not tried: this kernel has no sockets that let no descriptors in");
            return None;
        }
        Some(tempfile::tempdir().unwrap())
    }

    /// A connection whose last holder waits when it lets go: there is something to send that nobody takes.
    fn sticky() -> (TcpStream, TcpListener) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        stream.set_nonblocking(true).unwrap();
        while stream.write(&[0; 65_536]).is_ok() {}
        rustix::net::sockopt::set_socket_linger(&stream, Some(LINGER)).unwrap();
        (stream, listener)
    }

    /// Sends a byte and a descriptor, and keeps none.
    fn smuggle(through: &UnixStream, what: impl Into<OwnedFd>) -> rustix::io::Result<usize> {
        let what = what.into();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let fds = [what.as_fd()];
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&fds)));
        sendmsg(through, &[IoSlice::new(b"x")], &mut ancillary, SendFlags::NOSIGNAL)
    }

    #[test]
    fn whoever_reads_an_ordinary_socket_can_be_held_up_by_a_descriptor() {
        let (mut reader, writer) = UnixStream::pair().unwrap();
        let (stream, _never_read) = sticky();
        smuggle(&writer, stream).unwrap();
        let begun = Instant::now();
        reader.read_exact(&mut [0]).unwrap();
        assert!(begun.elapsed() >= LINGER, "the attack that the next test is about does not work");
    }

    #[test]
    fn descriptors_do_not_come_in_and_words_do() {
        let Some(directory) = place() else { return };
        let listener = listen(directory.path(), "door").unwrap();
        let mut host = connect(directory.path(), "door").unwrap();
        host.set_nonblocking(false).unwrap();
        let (mut guest, _) = listener.accept().unwrap();
        let (stream, _never_read) = sticky();
        assert_eq!(smuggle(&guest, stream.try_clone().unwrap()), Err(rustix::io::Errno::PERM));
        guest.write_all(b"y").unwrap();
        let mut word = [0];
        host.read_exact(&mut word).unwrap();
        assert_eq!(&word, b"y");
        host.write_all(b"z").unwrap();
        guest.read_exact(&mut word).unwrap();
        assert_eq!(&word, b"z");
        rustix::net::sockopt::set_socket_linger(&stream, None).unwrap();
    }

    #[test]
    fn a_door_is_found_however_long_the_way_to_it_and_opened_anew() {
        let Some(directory) = place() else { return };
        let deep = directory.path().join("d".repeat(200)).join("e".repeat(200));
        std::fs::create_dir_all(&deep).unwrap();
        assert_eq!(connect(&deep, "door").unwrap_err().kind(), io::ErrorKind::NotFound);
        let first = listen(&deep, "door").unwrap();
        assert!(connect(&deep, "door").is_ok());
        assert_eq!(listen(&deep, "door").unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(first);
        assert_eq!(connect(&deep, "door").unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        std::fs::remove_file(deep.join("door")).unwrap();
        let _second = listen(&deep, "door").unwrap();
        assert!(connect(&deep, "door").is_ok());
    }

    #[test]
    fn a_crowd_before_a_door_that_nobody_opens_is_an_error_and_no_wait() {
        let Some(directory) = place() else { return };
        let _listener = listen(directory.path(), "door").unwrap();
        let crowd: io::Result<Vec<_>> = (0..=WAITING + 1).map(|_| connect(directory.path(), "door")).collect();
        assert_eq!(crowd.unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
