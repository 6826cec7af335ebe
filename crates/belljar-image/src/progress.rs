//! What is happening, told while it happens: building a template takes minutes, and people want to see that it moves.

use std::io::Write;
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
    /// Takes one report; must not block for long.
    fn report(&self, progress: Progress<'_>);
}

impl<F: Fn(Progress<'_>) + Sync> ProgressSink for F {
    fn report(&self, progress: Progress<'_>) {
        self(progress);
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
