//! A terminal for the command, carried to the asker's own terminal.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use belljar_types::PtySize;
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr, tcsetwinsize};
use tokio::io::Interest;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::process::{Channel, open_terminal};

/// How long the last output is waited for after the command has ended.
const LAST_OUTPUT: Duration = Duration::from_millis(100);

/// Both terminals.
pub(super) struct Relay {
    master: Channel,
    slave: Option<OwnedFd>,
    typed: mpsc::Receiver<Vec<u8>>,
    resized: Signal,
    before: Termios,
}

impl Relay {
    /// Makes a terminal like the asker's, if standard input is one and this program is in its foreground.
    pub(super) fn begin() -> io::Result<Option<Self>> {
        let stdin = rustix::stdio::stdin();
        let in_foreground = tcgetpgrp(stdin).is_ok_and(|group| group == rustix::process::getpgrp());
        if !isatty(stdin) || !in_foreground {
            return Ok(None);
        }
        let before = tcgetattr(stdin)?;
        let size = tcgetwinsize(stdin)?;
        let (master, slave) = open_terminal(PtySize { columns: size.ws_col, rows: size.ws_row }, None)?;
        tcsetattr(&slave, OptionalActions::Now, &before)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin, OptionalActions::Drain, &raw)?;
        let (give, typed) = mpsc::channel(4);
        // A thread, because making the asker's terminal non-blocking would change it for the shell too.
        std::thread::spawn(move || read_typed(&give));
        let master = Channel::new(master, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Some(Self { master, slave: Some(slave), typed, resized: signal(SignalKind::window_change())?, before }))
    }

    /// What the command gets: its terminal in the place of the asker's, everything else as it is.
    pub(super) fn stdio(&self) -> [BorrowedFd<'_>; 3] {
        let own = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
        own.map(|fd| match &self.slave {
            Some(slave) if isatty(fd) => slave.as_fd(),
            _ => fd,
        })
    }

    /// The command has its terminal; this side must not keep it open.
    pub(super) fn let_go(&mut self) {
        self.slave = None;
    }

    /// Moves what there is to move.
    pub(super) async fn step(&mut self) {
        let mut buffer = [0u8; 4096];
        tokio::select! {
            Some(bytes) = self.typed.recv() => {
                let mut rest = bytes.as_slice();
                while let Ok(count @ 1..) = self.master.write(rest).await {
                    rest = rest.get(count..).unwrap_or_default();
                    if rest.is_empty() {
                        break;
                    }
                }
            }
            read = self.master.read(&mut buffer) => match read {
                Ok(count @ 1..) => show(buffer.get(..count).unwrap_or_default()),
                // Nobody has the terminal open any more; the command's end is told by the agent.
                _ => std::future::pending().await,
            },
            _ = self.resized.recv() => {
                if let Ok(size) = tcgetwinsize(rustix::stdio::stdin()) {
                    let _ = tcsetwinsize(self.master.fd(), size);
                }
            }
        }
    }

    /// Shows what the command said last.
    pub(super) async fn drain(&mut self) {
        let mut buffer = [0u8; 4096];
        while let Ok(Ok(count @ 1..)) = tokio::time::timeout(LAST_OUTPUT, self.master.read(&mut buffer)).await {
            show(buffer.get(..count).unwrap_or_default());
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // The terminal may be gone; then there is nothing to put back.
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, &self.before);
    }
}

fn show(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    // Nobody may be looking.
    let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
}

fn read_typed(give: &mpsc::Sender<Vec<u8>>) {
    let mut buffer = [0u8; 1024];
    while let Ok(count @ 1..) = io::stdin().lock().read(&mut buffer) {
        if give.blocking_send(buffer.get(..count).unwrap_or_default().to_vec()).is_err() {
            return;
        }
    }
}
