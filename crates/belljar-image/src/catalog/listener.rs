//! From progress to lines that anybody may print, and from a caller who went away to work that ends.

use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use belljar_ports::BuildLine;
use belljar_types::{chain, escape_untrusted};
use tokio::sync::mpsc;

use crate::{Progress, ProgressSink};

/// How many bytes flow between two lines about them.
const BYTES_PER_LINE: u64 = 32 << 20;
const MEBIBYTE: u64 = 1 << 20;

/// Who is told, as long as they listen.
#[derive(Debug)]
pub(super) struct Listener {
    lines: mpsc::Sender<BuildLine>,
    told_bytes: AtomicU64,
    stop: Arc<Stop>,
}

#[derive(Default)]
struct Stop {
    stopped: AtomicBool,
    act: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Stop {
    /// Whoever comes second, the word to stop or what to do then, finds the other there.
    fn act_if_stopped(&self) {
        let act = self.act.lock().unwrap_or_else(PoisonError::into_inner).take_if(|_| self.stopped.load(Ordering::Acquire));
        if let Some(act) = act {
            act();
        }
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stop").field("stopped", &self.stopped).finish_non_exhaustive()
    }
}

/// Stops the work when the caller's future is dropped, and does nothing once the work is done.
#[derive(Debug)]
pub(super) struct StopOnDrop(Arc<Stop>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stopped.store(true, Ordering::Release);
        self.0.act_if_stopped();
    }
}

impl Listener {
    pub(super) fn new(lines: mpsc::Sender<BuildLine>) -> Self {
        Self { lines, told_bytes: AtomicU64::new(0), stop: Arc::default() }
    }

    pub(super) fn stop_on_drop(&self) -> StopOnDrop {
        StopOnDrop(Arc::clone(&self.stop))
    }

    fn say(&self, text: &str) {
        // A listener that is slow or gone misses lines; the work does not wait.
        let _ = self.lines.try_send(BuildLine { text: printable(text) });
    }

    fn say_bytes(&self, done: u64, total: Option<u64>) {
        let stretch = done / BYTES_PER_LINE;
        if self.told_bytes.swap(stretch, Ordering::Relaxed) == stretch || stretch == 0 {
            return;
        }
        let of = total.map(|total| format!(" of {}", total.div_ceil(MEBIBYTE))).unwrap_or_default();
        self.say(&format!("{}{of} MiB", done / MEBIBYTE));
    }
}

impl ProgressSink for Listener {
    fn report(&self, progress: Progress<'_>) {
        match progress {
            Progress::Step(step) => self.say(step),
            Progress::Reused(what) => self.say(&format!("{what} is there already")),
            Progress::Bytes { done, total } => self.say_bytes(done, total),
        }
    }

    fn stopped(&self) -> bool {
        self.stop.stopped.load(Ordering::Acquire)
    }

    fn when_stopped(&self, act: Box<dyn FnOnce() + Send>) {
        *self.stop.act.lock().unwrap_or_else(PoisonError::into_inner) = Some(act);
        self.stop.act_if_stopped();
    }
}

/// An error and its causes in one line that is safe to print.
pub(super) fn printable_chain(error: &dyn Error) -> String {
    printable(&chain(error))
}

/// Escapes what a terminal would act on. Parts of the text were escaped where they came from: their backslashes stay as they are.
fn printable(text: &str) -> String {
    let mut buffer = [0; 4];
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '"' => out.push(c),
            c => out.push_str(&escape_untrusted(c.encode_utf8(&mut buffer).as_bytes())),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_cannot_move_a_cursor_and_are_escaped_once() {
        let (sender, mut receiver) = mpsc::channel(8);
        let listener = Listener::new(sender);
        let escaped = escape_untrusted(b"a \"b\" \\ \x1b[2J");
        for text in ["\x1b]0;title\x07\r\n", &escaped, "naïve \u{202e}"] {
            listener.report(Progress::Step(text));
        }
        for expected in ["\\u{1b}]0;title\\u{7}\\r\\n", &escaped, "naïve \\u{202e}"] {
            assert_eq!(receiver.try_recv().unwrap().text, expected);
        }
    }

    #[test]
    fn a_listener_that_does_not_listen_holds_nothing_up() {
        let (sender, mut receiver) = mpsc::channel(2);
        let listener = Listener::new(sender);
        for number in 0..1000_u64 {
            listener.report(Progress::Step("step"));
            listener.report(Progress::Bytes { done: number << 20, total: None });
        }
        let mut kept = 0;
        while receiver.try_recv().is_ok() {
            kept += 1;
        }
        assert_eq!(kept, 2);
    }

    #[test]
    fn bytes_are_told_now_and_then() {
        let (sender, mut receiver) = mpsc::channel(100);
        let listener = Listener::new(sender);
        for done in 0..=100 {
            listener.report(Progress::Bytes { done: done << 20, total: Some(100 << 20) });
        }
        let told: Vec<String> = std::iter::from_fn(|| receiver.try_recv().ok().map(|line| line.text)).collect();
        assert_eq!(told, ["32 of 100 MiB", "64 of 100 MiB", "96 of 100 MiB"]);
    }
}
