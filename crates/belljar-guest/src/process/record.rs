//! One process: its streams, its readers, its end.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use belljar_guest_protocol::Failure;
use belljar_types::{
    ExitStatus, KillCause, Offsets, ProcessId, ProcessInfo, ProcessSpec, PtySize, SpoolPolicy, StreamKind, Termination, UserName,
};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::Interest;
use tokio::sync::{Mutex, Notify};

use super::channel::Channel;
use super::launch::{Launched, Streams, set_terminal_size};
use super::spool::{Found, Spool};
use super::stdin::Stdin;
use super::{Processes, kill_family, pump, tell_window_changed};
use crate::users::User;

/// How long the last output is waited for when something else still holds the streams.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

/// How far a reader has got, and whether it stopped taking anything.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader {
    pub(super) acknowledged: Offsets,
    pub(super) stalled: bool,
}

/// A process that was started here.
pub(crate) struct Process {
    pub(crate) id: ProcessId,
    pub(crate) pid: u32,
    pub(crate) started_at_millis: u64,
    argv: Vec<Vec<u8>>,
    tag: Option<String>,
    user: UserName,
    pub(super) policy: SpoolPolicy,
    pub(super) stdout: RefCell<Spool>,
    pub(super) stderr: RefCell<Spool>,
    pub(super) readers: RefCell<HashMap<u64, Reader>>,
    next_reader: Cell<u64>,
    /// Told when there is more to read, or the end.
    pub(crate) changed: Notify,
    /// Told when a reader has got further, or left.
    pub(super) room: Notify,
    pub(super) open_streams: Cell<u8>,
    pub(super) died: Cell<Option<Termination>>,
    pub(super) cause: Cell<Option<KillCause>>,
    exit: Cell<Option<ExitStatus>>,
    pub(super) stdin: Mutex<Stdin>,
    pub(super) stdin_offset: Cell<u64>,
    terminal: Option<Rc<Channel>>,
    pub(super) owner: Weak<Processes>,
}

impl Process {
    /// Takes over a child that was launched, and follows it to its end.
    pub(super) fn begin(owner: &Rc<Processes>, spec: ProcessSpec, user: &User, launched: Launched) -> Rc<Self> {
        let spool = || RefCell::new(Spool::new(spec.spool.capacity as usize, Rc::clone(&owner.budget)));
        let channel = |fd, interest| Channel::new(fd, interest).ok().map(Rc::new);
        let (stdin, terminal, outputs) = match launched.streams {
            Streams::Pipes { stdin, stdout, stderr } => {
                let stdin = stdin.and_then(|fd| channel(fd, Interest::WRITABLE));
                (stdin, None, [channel(stdout, Interest::READABLE), channel(stderr, Interest::READABLE)])
            }
            Streams::Terminal(master) => {
                let master = channel(master, Interest::READABLE | Interest::WRITABLE);
                (master.clone(), master.clone(), [master, None])
            }
            Streams::Given => (None, None, [None, None]),
        };
        let process = Rc::new(Self {
            pid: launched.pid,
            started_at_millis: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(0)),
            user: user.type_name(),
            policy: spec.spool,
            stdout: spool(),
            stderr: spool(),
            readers: RefCell::default(),
            next_reader: Cell::new(0),
            changed: Notify::new(),
            room: Notify::new(),
            open_streams: Cell::new(0),
            died: Cell::new(None),
            cause: Cell::new(None),
            exit: Cell::new(None),
            stdin: Mutex::new(Stdin::new(stdin, spec.pty.is_some())),
            stdin_offset: Cell::new(0),
            terminal,
            owner: Rc::downgrade(owner),
            id: spec.id,
            argv: spec.argv,
            tag: spec.tag,
        });
        for (stream, channel) in [StreamKind::Stdout, StreamKind::Stderr].into_iter().zip(outputs) {
            if let Some(channel) = channel {
                process.open_streams.set(process.open_streams.get() + 1);
                tokio::task::spawn_local(pump::run(Rc::clone(&process), stream, channel));
            }
        }
        if let Some(deadline) = spec.deadline {
            tokio::task::spawn_local(Rc::clone(&process).enforce(deadline));
        }
        tokio::task::spawn_local(Rc::clone(&process).follow(launched.ended));
        process
    }

    /// Waits for its end, then for its last output.
    async fn follow(self: Rc<Self>, ended: tokio::sync::oneshot::Receiver<Termination>) {
        // The reaper lives as long as the agent.
        let termination = ended.await.unwrap_or(Termination::Signaled(9));
        self.died.set(Some(termination));
        self.room.notify_waiters();
        let last_output = async {
            while self.open_streams.get() > 0 {
                self.changed.notified().await;
            }
        };
        let _ = tokio::time::timeout(LAST_OUTPUT, last_output).await;
        self.exit.set(Some(ExitStatus { termination, cause: self.cause.get() }));
        self.changed.notify_waiters();
        if let Some(owner) = self.owner.upgrade() {
            owner.note_exit(&self.id);
        }
    }

    async fn enforce(self: Rc<Self>, deadline: Duration) {
        tokio::time::sleep(deadline).await;
        self.kill(KillCause::Deadline);
    }

    /// Kills it and whatever it started.
    pub(super) fn kill(&self, cause: KillCause) {
        if self.died.get().is_none() {
            self.cause.set(Some(cause));
        }
        self.kill_all();
    }

    fn kill_all(&self) {
        let (pid, mark) = (self.pid, self.id.to_string());
        // The task goes on by itself; there is nobody to tell.
        drop(tokio::task::spawn_blocking(move || kill_family(pid, Some(&mark))));
    }

    /// Sends a signal to its process group, if it is alive.
    pub(super) fn signal_group(&self, signal: Signal) {
        if self.died.get().is_none()
            && let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw)
        {
            // It may have died a moment ago.
            let _ = kill_process_group(pid, signal);
        }
    }

    /// Sends a signal that a caller asked for.
    pub(crate) fn signal(&self, number: u8) -> Result<(), Failure> {
        let signal = Signal::from_named_raw(i32::from(number));
        let unknown = || Failure::refused(22, format!("this kernel has no signal {number}"));
        match signal {
            Some(Signal::KILL) => self.kill_all(),
            _ if self.died.get().is_some() => return Err(Failure::refused(3, "the process has ended")),
            Some(signal) => self.signal_group(signal),
            None => return Err(unknown()),
        }
        Ok(())
    }

    /// Waits until it has ended and the kernel does not know it any more.
    pub(crate) async fn gone(&self) {
        loop {
            let news = self.room.notified();
            if self.died.get().is_some() {
                return;
            }
            news.await;
        }
    }

    /// Changes the size of its terminal.
    pub(crate) fn resize(&self, size: PtySize) -> Result<(), Failure> {
        let terminal = self.terminal.as_ref().ok_or_else(|| Failure::refused(25, "the process has no terminal"))?;
        set_terminal_size(terminal.fd(), size)
            .map_err(|error| Failure::refused(error.raw_os_error().unwrap_or(0), format!("could not resize the terminal: {error}")))?;
        let session = self.pid;
        drop(tokio::task::spawn_blocking(move || tell_window_changed(session)));
        Ok(())
    }

    pub(crate) fn exit(&self) -> Option<ExitStatus> {
        self.exit.get()
    }

    pub(crate) fn info(&self) -> ProcessInfo {
        ProcessInfo {
            id: self.id.clone(),
            pid: self.pid,
            argv: self.argv.clone(),
            tag: self.tag.clone(),
            user: self.user.clone(),
            pty: self.terminal.is_some(),
            started_at_millis: self.started_at_millis,
            exit: self.exit.get(),
            written: Offsets { stdout: self.stdout.borrow().end(), stderr: self.stderr.borrow().end() },
            stdin_offset: self.stdin_offset.get(),
        }
    }

    pub(super) fn spool(&self, stream: StreamKind) -> &RefCell<Spool> {
        match stream {
            StreamKind::Stdout => &self.stdout,
            StreamKind::Stderr => &self.stderr,
        }
    }

    /// What is at this offset of a stream.
    pub(crate) fn read(&self, stream: StreamKind, from: u64, most: usize) -> Found {
        self.spool(stream).borrow().read(from, most)
    }

    /// Its output is no longer kept; what still writes to it is read and thrown away.
    pub(super) fn forget_output(&self) {
        self.stdout.borrow_mut().clear();
        self.stderr.borrow_mut().clear();
        self.room.notify_waiters();
    }

    /// Counts a reader in until the guard is dropped.
    pub(crate) fn attach(self: &Rc<Self>, from: Offsets) -> ReaderGuard {
        let key = self.next_reader.get();
        self.next_reader.set(key + 1);
        self.readers.borrow_mut().insert(key, Reader { acknowledged: from, stalled: false });
        // A reader that begins late needs less than was kept for nobody in particular.
        self.room.notify_waiters();
        ReaderGuard { process: Rc::clone(self), key }
    }
}

/// A reader of a process's output.
pub(crate) struct ReaderGuard {
    pub(crate) process: Rc<Process>,
    key: u64,
}

impl ReaderGuard {
    /// The reader has got everything before these offsets.
    pub(crate) fn acknowledge(&self, offsets: Offsets) {
        if let Some(reader) = self.process.readers.borrow_mut().get_mut(&self.key) {
            reader.acknowledged.stdout = reader.acknowledged.stdout.max(offsets.stdout);
            reader.acknowledged.stderr = reader.acknowledged.stderr.max(offsets.stderr);
            reader.stalled = false;
        }
        self.process.room.notify_waiters();
    }
}

impl Drop for ReaderGuard {
    fn drop(&mut self) {
        self.process.readers.borrow_mut().remove(&self.key);
        self.process.room.notify_waiters();
    }
}
