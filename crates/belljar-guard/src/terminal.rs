//! The terminal, handed to the sandbox and taken back.
//!
//! Everything inside is a process group of its own. In the caller's group it could end the caller's script with `kill 0`, which does not stop
//! at namespaces. A group of its own must be the terminal's foreground to read from it, so the guard does what a shell does with its jobs:
//! hand the terminal over, and take it back when the group stops or ends.

use std::fs::File;

use rustix::process::{Pid, getpgrp};
use rustix::termios::{isatty, tcgetpgrp, tcsetpgrp};

/// The controlling terminal, and whose it is.
#[derive(Debug)]
pub(crate) struct Terminal {
    device: File,
    inside: Pid,
    handed_over: bool,
}

impl Terminal {
    /// `None` without a controlling terminal.
    pub(crate) fn of(inside: Pid) -> Option<Self> {
        let device = File::options().read(true).write(true).open("/dev/tty").ok()?;
        Some(Self { device, inside, handed_over: false })
    }

    fn is_ours(&self) -> bool {
        tcgetpgrp(&self.device).is_ok_and(|foreground| foreground == getpgrp())
    }

    /// At the start: only if the command talks to the terminal alone. In a pipe, the program at its other end may need it.
    pub(crate) fn hand_over_if_interactive(&mut self) {
        if isatty(rustix::stdio::stdin()) && isatty(rustix::stdio::stdout()) {
            self.hand_over();
        }
    }

    /// Whether it is the sandbox's now. In the background it stays with whoever has it.
    pub(crate) fn hand_over(&mut self) -> bool {
        if self.is_ours() {
            self.handed_over = tcsetpgrp(&self.device, self.inside).is_ok();
        }
        self.handed_over
    }

    pub(crate) fn is_handed_over(&self) -> bool {
        self.handed_over
    }

    /// Back to the guard's own group; from the background this needs `SIGTTOU` held back.
    pub(crate) fn take_back(&mut self) {
        if std::mem::take(&mut self.handed_over) {
            let _ = tcsetpgrp(&self.device, getpgrp());
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.take_back();
    }
}
