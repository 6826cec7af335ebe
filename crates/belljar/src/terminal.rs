//! The terminal this program runs in: raw while a shell is open, and as it was before on every way out: return, error, panic, signal.

use std::io::{IsTerminal, stdin, stdout};
use std::sync::{Mutex, Once, PoisonError};

use belljar_types::PtySize;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// What to go back to; kept here so that a panic finds it whichever task it is in.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);
static HOOK: Once = Once::new();

/// Whether a person sits at both ends.
pub(crate) fn is_interactive() -> bool {
    stdin().is_terminal() && stdout().is_terminal()
}

/// The size of the terminal, if there is one.
pub(crate) fn size() -> Option<PtySize> {
    let size = tcgetwinsize(stdout()).or_else(|_| tcgetwinsize(stdin())).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some(PtySize { columns: size.ws_col, rows: size.ws_row })
}

/// Passes keys through as they are typed while it lives.
#[derive(Debug)]
pub(crate) struct RawTerminal(());

impl RawTerminal {
    /// Makes standard input raw. `None` if it is no terminal: there is nothing to change and nothing to restore.
    pub(crate) fn enter() -> std::io::Result<Option<Self>> {
        if !stdin().is_terminal() {
            return Ok(None);
        }
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        HOOK.call_once(restore_on_panic);
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        // Dropped on the way out if the next step fails.
        let guard = Self(());
        tcsetattr(stdin(), OptionalActions::Drain, &raw)?;
        Ok(Some(guard))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    if let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        // A terminal that is gone needs no restoring.
        let _ = tcsetattr(stdin(), OptionalActions::Flush, &before);
    }
}

/// The words of a panic are to be read on a terminal that breaks lines.
fn restore_on_panic() {
    let next = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        restore();
        next(panic);
    }));
}
