//! What is happening, told while it happens: building a template takes minutes, and people want to see that it moves.

use std::io::{self, Read, Write};
use std::sync::Mutex;

/// One thing that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// A new step begins.
    Step(&'a str),
    /// Bytes of the current step.
    Bytes {
        /// So far.
        done: u64,
        /// In all, where it is known.
        total: Option<u64>,
    },
    /// What was asked for is there already.
    Reused(&'a str),
}

/// Who is told.
pub trait ProgressSink: Sync {
    /// Takes one report; must not block for long. Its text is safe to print.
    fn report(&self, progress: Progress<'_>);

    /// Whether nobody wants the result any more. Asked often; once it says so, the work ends with an error and leaves nothing.
    fn stopped(&self) -> bool {
        false
    }

    /// Does this when that happens, at once if it has; for work that waits for something else than bytes. The last one asked for counts.
    fn when_stopped(&self, act: Box<dyn FnOnce() + Send>) {
        drop(act);
    }
}

impl<F: Fn(Progress<'_>) + Sync> ProgressSink for F {
    fn report(&self, progress: Progress<'_>) {
        self(progress);
    }
}

/// Bytes that stop flowing when nobody wants them any more.
pub(crate) struct Stoppable<'a, R> {
    inner: R,
    progress: &'a dyn ProgressSink,
}

impl<'a, R: Read> Stoppable<'a, R> {
    pub(crate) fn new(inner: R, progress: &'a dyn ProgressSink) -> Self {
        Self { inner, progress }
    }
}

impl<R: Read> Read for Stoppable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.progress.stopped() {
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "whoever asked for it went away"));
        }
        self.inner.read(buffer)
    }
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl ProgressSink for Silent {
    fn report(&self, _: Progress<'_>) {}
}

/// Writes one line a step, for logs and pipes.
#[derive(Debug)]
pub struct PlainProgress<W>(Mutex<W>);

impl<W: Write> PlainProgress<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self(Mutex::new(out))
    }
}

impl<W: Write + Send> ProgressSink for PlainProgress<W> {
    fn report(&self, progress: Progress<'_>) {
        let Ok(mut out) = self.0.lock() else { return };
        // A log that cannot be written must not stop a build.
        let _ = match progress {
            Progress::Step(step) => writeln!(out, "{step}"),
            Progress::Reused(what) => writeln!(out, "{what} is there already"),
            Progress::Bytes { .. } => Ok(()),
        };
    }
}
