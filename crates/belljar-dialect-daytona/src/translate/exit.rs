//! How a program ended, as one number.

use belljar_types::{ExitStatus, Termination};

/// As a shell has it: what a signal ended is 128 and the signal's number.
pub(crate) fn exit_code(exit: &ExitStatus) -> i32 {
    match exit.termination {
        Termination::Exited(code) => code,
        Termination::Signaled(signal) => 128 + i32::from(signal),
    }
}
