//! Turns what went wrong on a line into the words of [`GuestError`].

use std::io;

use belljar_guest_line::LineError;
use belljar_guest_protocol::{Failure, FailureCode, Verb};
use belljar_ports::GuestError;
use belljar_types::{Invalid, ProcessId, escape_untrusted};

/// How much of an agent's message is passed on.
const LONGEST_MESSAGE: usize = 1024;

/// The connection is gone, or what came over it was nonsense.
pub(crate) fn line_failed(verb: Verb, error: LineError) -> GuestError {
    let source = match error {
        LineError::Closed => io::ErrorKind::UnexpectedEof.into(),
        LineError::Silent => io::ErrorKind::TimedOut.into(),
        LineError::Io(source) => source,
        LineError::Frame(frame) => return misbehaved(verb, frame.to_string()),
    };
    GuestError::Lost { operation: verb.words(), source }
}

/// The agent broke the protocol. `detail` is this side's own words.
pub(crate) fn misbehaved(verb: Verb, detail: impl Into<String>) -> GuestError {
    GuestError::Misbehaved { operation: verb.words(), detail: detail.into() }
}

/// A value from the agent that cannot be.
pub(crate) fn bad_value(verb: Verb, invalid: &Invalid) -> GuestError {
    misbehaved(verb, format!("it sent a bad {invalid}"))
}

/// An answer took longer than any honest one.
pub(crate) fn too_slow(verb: Verb) -> GuestError {
    GuestError::Lost { operation: verb.words(), source: io::ErrorKind::TimedOut.into() }
}

/// The agent said no.
pub(crate) fn refused(verb: Verb, generation: u16, process: Option<&ProcessId>, failure: &Failure) -> GuestError {
    let message = shorten(&failure.message);
    match (failure.known_code(), process) {
        (FailureCode::NoProcess, Some(id)) => GuestError::NoProcess { id: id.clone() },
        (FailureCode::UnknownVerb, _) => GuestError::TooOld { generation, verb: verb.words() },
        (FailureCode::Invalid, _) if failure.field.is_some() => GuestError::Invalid(Invalid {
            field: shorten(failure.field.as_deref().unwrap_or_default()),
            expected: shorten(failure.expected.as_deref().unwrap_or_default()),
            // Quoted and escaped where it was refused; escaped again it would be unreadable, so only what could do harm is.
            got: message.replace("\\\"", "\"").replace("\\\\", "\\"),
        }),
        _ => GuestError::Refused { operation: verb.words(), errno: failure.errno, message },
    }
}

fn shorten(text: &str) -> String {
    let mut shown = escape_untrusted(text.as_bytes());
    if let Some((end, _)) = shown.char_indices().nth(LONGEST_MESSAGE) {
        shown.truncate(end);
        shown.push('…');
    }
    shown
}
