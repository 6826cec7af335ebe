//! The line between the guard and the first process: one word in, a few records out.
//!
//! It is a pair of connected sockets that keep records apart. When one end is gone the other reads its end: the guard learns that everything
//! inside is over, and the first process that nobody watches over it any more.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};

macro_rules! steps {
    ($($name:ident = $words:literal,)*) => {
        /// What the first process was doing.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Step { $(#[doc = $words] $name,)* }

        impl Step {
            const ALL: &[Self] = &[$(Self::$name,)*];
        }

        impl fmt::Display for Step {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$name => $words,)* })
            }
        }
    };
}

steps! {
    Prepare = "prepare the sandbox",
    JoinGroup = "join the control group",
    BecomeUser = "become the sandbox's user",
    Loopback = "bring the loopback interface up",
    HostName = "set the host name",
    Copy = "show",
    Read = "read",
    MakeRoot = "make the root of the sandbox",
    ChangeRoot = "change into the root of the sandbox",
    Write = "write",
    MakeDirectory = "make the directory",
    Attach = "attach",
    Processes = "mount /proc",
    Terminals = "mount /dev/pts",
    Mask = "cover",
    Protect = "protect",
    Directory = "change to",
    Limit = "set a limit",
    DropPowers = "drop capabilities",
    Fence = "put up the Landlock fence",
    Filter = "install the system call filter",
    Start = "start the command's process",
}

/// What the first process tells.
#[derive(Debug)]
pub(crate) enum Record {
    /// A step failed; the sandbox is gone.
    Failed(Failure),
    /// The program could not be executed.
    NotExecuted(i32),
    /// This signal stopped the command.
    Stopped(i32),
    /// The command ended.
    Exited(i32),
    /// This signal ended the command.
    Killed(i32),
}

/// A step that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) step: Step,
    pub(crate) path: PathBuf,
    pub(crate) source: io::Error,
}

/// Attaches a step and its object to an error.
pub(crate) trait At<T> {
    fn at(self, step: Step, path: impl AsRef<Path>) -> Result<T, Failure>;
}

impl<T, E: Into<io::Error>> At<T> for Result<T, E> {
    fn at(self, step: Step, path: impl AsRef<Path>) -> Result<T, Failure> {
        self.map_err(|source| Failure { step, path: path.as_ref().to_owned(), source: source.into() })
    }
}

const LONGEST: usize = 8192;

/// One end.
#[derive(Debug)]
pub(crate) struct Line(OwnedFd);

impl Line {
    pub(crate) fn pair() -> io::Result<(Self, Self)> {
        let (here, there) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Self(here), Self(there)))
    }

    /// Lets the first process begin.
    pub(crate) fn release(&self) -> io::Result<()> {
        send(&self.0, b"go", SendFlags::NOSIGNAL).map(drop).map_err(Into::into)
    }

    /// Waits to be released; an error if nobody will.
    pub(crate) fn wait_for_release(&self) -> io::Result<()> {
        let mut word = [0; 2];
        let (got, _) = rustix::io::retry_on_intr(|| recv(&self.0, &mut word, RecvFlags::empty()))?;
        if got == 0 { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }

    /// An error if the other end is gone already.
    pub(crate) fn is_watched(&self) -> io::Result<()> {
        let mut end = [PollFd::new(&self.0, PollFlags::empty())];
        poll(&mut end, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
        let [end] = end;
        if end.revents().intersects(PollFlags::HUP | PollFlags::ERR) { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }

    /// Tells a record. Nobody listening is no error: then nobody needs it.
    pub(crate) fn tell(&self, record: &Record) {
        let (kind, step, value, path) = match record {
            Record::Failed(failure) => (0, failure.step as u8, failure.source.raw_os_error().unwrap_or(0), failure.path.as_os_str()),
            Record::NotExecuted(errno) => (1, 0, *errno, OsStr::new("")),
            Record::Stopped(signal) => (2, 0, *signal, OsStr::new("")),
            Record::Exited(code) => (3, 0, *code, OsStr::new("")),
            Record::Killed(signal) => (4, 0, *signal, OsStr::new("")),
        };
        let mut bytes = vec![kind, step];
        bytes.extend(value.to_ne_bytes());
        bytes.extend(path.as_bytes().iter().take(LONGEST - bytes.len()));
        let _ = send(&self.0, &bytes, SendFlags::NOSIGNAL);
    }

    /// The next record; `None` when the other end is gone.
    pub(crate) fn hear(&self) -> io::Result<Option<Record>> {
        let mut bytes = vec![0; LONGEST];
        let (got, _) = match rustix::io::retry_on_intr(|| recv(&self.0, bytes.as_mut_slice(), RecvFlags::empty())) {
            Err(rustix::io::Errno::CONNRESET) => return Ok(None),
            other => other?,
        };
        let Some((&[kind, step, a, b, c, d], path)) = bytes.get(..got).and_then(<[u8]>::split_first_chunk::<6>) else {
            return Ok(None);
        };
        let value = i32::from_ne_bytes([a, b, c, d]);
        Ok(Some(match kind {
            0 => Record::Failed(Failure {
                step: Step::ALL.get(usize::from(step)).copied().unwrap_or(Step::Prepare),
                path: PathBuf::from(OsStr::from_bytes(path)),
                source: io::Error::from_raw_os_error(value),
            }),
            1 => Record::NotExecuted(value),
            2 => Record::Stopped(value),
            3 => Record::Exited(value),
            _ => Record::Killed(value),
        }))
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
