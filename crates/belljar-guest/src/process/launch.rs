//! One start: pipes or a terminal, the child, and words for what went wrong.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use belljar_guest_protocol::Failure;
use belljar_linux::child::{ChildError, ChildPlan, ChildStep, ChildUser, spawn};
use belljar_types::{PtySize, Termination, escape_untrusted};
use rustix::fs::{Gid, Mode, OFlags, Uid};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::sync::oneshot;

/// How a child is joined to the world.
pub(crate) enum Wiring {
    /// Pipes; standard input is empty unless it is kept open.
    Pipes { stdin: bool },
    /// A terminal of its own.
    Terminal(PtySize),
    /// Somebody else's descriptors, and whether the first is a terminal to take over.
    Given { stdio: [OwnedFd; 3], terminal: bool },
}

/// Everything a start needs.
pub(crate) struct Launch {
    pub(crate) programs: Vec<CString>,
    pub(crate) argv: Vec<CString>,
    pub(crate) env: Vec<CString>,
    pub(crate) cwd: CString,
    pub(crate) user: ChildUser,
    pub(crate) wiring: Wiring,
}

/// The agent's ends of a child's streams.
pub(crate) enum Streams {
    Pipes { stdin: Option<OwnedFd>, stdout: OwnedFd, stderr: OwnedFd },
    Terminal(OwnedFd),
    Given,
}

/// A child that was started, before anybody waits for it.
pub(crate) struct Started {
    pub(super) pid: u32,
    pub(super) streams: Streams,
}

/// A child that runs, or ran.
pub(crate) struct Launched {
    pub(crate) pid: u32,
    pub(super) streams: Streams,
    pub(crate) ended: oneshot::Receiver<Termination>,
}

impl Launch {
    /// Starts the child. Blocks until its program runs or could not be run.
    pub(super) fn start(self) -> Result<Started, Failure> {
        match self.wiring {
            Wiring::Pipes { stdin } => self.start_with_pipes(stdin).map_err(|error| self.explain(&error)),
            Wiring::Terminal(size) => self.start_with_terminal(size).map_err(|error| self.explain(&error)),
            Wiring::Given { ref stdio, terminal } => {
                let [stdin, stdout, stderr] = stdio;
                let pid = self.spawn([stdin, stdout, stderr], terminal).map_err(|error| self.explain(&error))?;
                Ok(Started { pid, streams: Streams::Given })
            }
        }
    }

    fn start_with_pipes(&self, keep_stdin: bool) -> Result<Started, ChildError> {
        let (child_stdin, stdin) = if keep_stdin {
            let (reader, writer) = pipe()?;
            (reader, Some(writer))
        } else {
            (File::open("/dev/null").map_err(stdio_failed)?.into(), None)
        };
        let (stdout, child_stdout) = pipe()?;
        let (stderr, child_stderr) = pipe()?;
        let pid = self.spawn([&child_stdin, &child_stdout, &child_stderr], false)?;
        Ok(Started { pid, streams: Streams::Pipes { stdin, stdout, stderr } })
    }

    fn start_with_terminal(&self, size: PtySize) -> Result<Started, ChildError> {
        let (master, slave) = open_terminal(size, Some((self.user.uid, self.user.gid))).map_err(stdio_failed)?;
        let pid = self.spawn([&slave, &slave, &slave], true)?;
        Ok(Started { pid, streams: Streams::Terminal(master) })
    }

    fn spawn(&self, stdio: [&OwnedFd; 3], controlling_terminal: bool) -> Result<u32, ChildError> {
        spawn(&ChildPlan {
            programs: self.programs.clone(),
            argv: self.argv.clone(),
            env: self.env.clone(),
            cwd: self.cwd.clone(),
            user: (!is_self(&self.user)).then(|| self.user.clone()),
            stdio: stdio.map(AsFd::as_fd),
            controlling_terminal,
            reset_oom_score: true,
        })
    }

    fn explain(&self, error: &ChildError) -> Failure {
        let errno = error.source.raw_os_error().unwrap_or(0);
        let reason = &error.source;
        let what = match error.step {
            ChildStep::Fork => format!("could not make a process: {reason}"),
            ChildStep::Session => format!("could not give the process its own session: {reason}"),
            ChildStep::Stdio => format!("could not make pipes or a terminal for the process: {reason}"),
            ChildStep::User => format!("could not become user {}: {reason}", self.user.uid),
            ChildStep::Directory => format!("could not enter the directory {}: {reason}", escape_untrusted(self.cwd.as_bytes())),
            ChildStep::Program => {
                let program = self.argv.first().map(|arg| escape_untrusted(arg.as_bytes())).unwrap_or_default();
                if errno == rustix::io::Errno::NOENT.raw_os_error() && self.programs.len() != 1 {
                    format!("there is no program {program} in PATH")
                } else {
                    format!("could not run {program}: {reason}")
                }
            }
        };
        Failure::refused(errno, what)
    }
}

/// Nothing to change: an agent that is no root (on a developer's machine) can still start processes as itself.
fn is_self(user: &ChildUser) -> bool {
    let uid = rustix::process::getuid().as_raw();
    uid != 0 && uid == user.uid
}

fn pipe() -> Result<(OwnedFd, OwnedFd), ChildError> {
    pipe_with(PipeFlags::CLOEXEC).map_err(|errno| stdio_failed(errno.into()))
}

fn stdio_failed(source: std::io::Error) -> ChildError {
    ChildError { step: ChildStep::Stdio, source }
}

/// A new terminal: the side that drives it, and the side that programs see, owned by `owner`.
pub(crate) fn open_terminal(size: PtySize, owner: Option<(u32, u32)>) -> std::io::Result<(OwnedFd, OwnedFd)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let slave = rustix::fs::open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    if let Some((uid, gid)) = owner {
        // Programs open their terminal by name again; a filesystem without owners does not need this.
        let _ = rustix::fs::fchown(&slave, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        let _ = rustix::fs::fchmod(&slave, Mode::from_raw_mode(0o620));
    }
    set_terminal_size(&master, size)?;
    Ok((master, slave))
}

/// Changes a terminal's size; programs in it are told by the kernel.
pub(crate) fn set_terminal_size(terminal: impl AsFd, size: PtySize) -> std::io::Result<()> {
    Ok(tcsetwinsize(terminal, Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 })?)
}
