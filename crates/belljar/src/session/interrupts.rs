//! Signals that come to this program while a process runs elsewhere. The first one goes on to the process, as if it ran here; see [`super`] for the rest.

use belljar_types::PtySize;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::terminal;

const HANGUP: u8 = 1;
const INTERRUPT: u8 = 2;
const QUIT: u8 = 3;
const TERMINATE: u8 = 15;

/// What came.
#[derive(Debug)]
pub(super) enum Interrupt {
    /// A signal to pass on.
    Signal(u8),
    /// This terminal has another size now.
    Resized(PtySize),
}

/// Everything that is listened for.
pub(super) struct Interrupts {
    hangup: Signal,
    interrupt: Signal,
    quit: Signal,
    terminate: Signal,
    window: Option<Signal>,
}

impl Interrupts {
    /// Begins to listen. In a raw terminal Ctrl-C is a key like others, and the size of the window matters.
    pub(super) fn listen(raw: bool) -> std::io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            terminate: signal(SignalKind::terminate())?,
            window: raw.then(|| signal(SignalKind::window_change())).transpose()?,
        })
    }

    /// Whether nobody is left to wait for the process: the terminal is gone.
    pub(super) fn ends_at_once(&self, number: u8) -> bool {
        number == HANGUP || (self.window.is_some() && number == TERMINATE)
    }

    pub(super) async fn next(&mut self) -> Interrupt {
        loop {
            let window = async {
                match &mut self.window {
                    Some(window) => window.recv().await,
                    None => std::future::pending().await,
                }
            };
            let number = tokio::select! {
                _ = self.hangup.recv() => HANGUP,
                _ = self.interrupt.recv() => INTERRUPT,
                _ = self.quit.recv() => QUIT,
                _ = self.terminate.recv() => TERMINATE,
                _ = window => match terminal::size() {
                    Some(size) => return Interrupt::Resized(size),
                    None => continue,
                },
            };
            return Interrupt::Signal(number);
        }
    }
}
