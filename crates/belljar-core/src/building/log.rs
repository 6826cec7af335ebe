//! What a build says: bounded, readable while it runs, and safe to print.

use belljar_types::{BuildFailure, BuildLog, BuildPlace, LogLevel, Timestamp, escape_untrusted};

/// The most lines that are kept; from then on they are only counted, so that those before keep their places.
const LINES_MAX: usize = 5000;
/// The most bytes of a line, and of all.
const LINE_MAX: usize = 2000;
const BYTES_MAX: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Log {
    lines: Vec<BuildLog>,
    bytes: usize,
    left_out: u64,
}

impl Log {
    pub(super) fn say(&mut self, level: LogLevel, place: BuildPlace, text: &str) {
        let cut = text.floor_char_boundary(LINE_MAX);
        if self.lines.len() >= LINES_MAX || self.bytes + cut > BYTES_MAX {
            self.left_out += 1;
            return;
        }
        self.bytes += cut;
        self.lines.push(BuildLog { at: Timestamp::now(), level, place, text: text.get(..cut).unwrap_or_default().to_owned() });
    }

    /// The end is always told, however long the log.
    pub(super) fn failure(&mut self, failure: &BuildFailure) {
        self.lines.truncate(LINES_MAX.saturating_sub(2));
        self.bytes = 0;
        if self.left_out > 0 {
            self.say(LogLevel::Warn, failure.place, &format!("{} more lines were left out", self.left_out + 2));
        }
        self.say(LogLevel::Error, failure.place, &failure.message);
    }

    pub(super) fn lines(&self, from: usize, limit: usize) -> Vec<BuildLog> {
        self.lines.iter().skip(from).take(limit).cloned().collect()
    }
}

/// Cuts what a process writes into lines, whatever it writes.
#[derive(Default)]
pub(super) struct Lines {
    pending: Vec<u8>,
}

impl Lines {
    pub(super) fn take(&mut self, bytes: &[u8], mut say: impl FnMut(&str)) {
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let room = LINE_MAX.saturating_sub(self.pending.len());
            self.pending.extend_from_slice(piece.get(..piece.len().min(room)).unwrap_or_default());
            if piece.ends_with(b"\n") || piece.ends_with(b"\r") {
                self.flush(&mut say);
            }
        }
    }

    pub(super) fn flush(&mut self, mut say: impl FnMut(&str)) {
        let line = std::mem::take(&mut self.pending);
        let line = line.trim_ascii();
        if !line.is_empty() {
            say(&escape_untrusted(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_made_safe_and_never_too_long() {
        let mut said = Vec::new();
        let mut lines = Lines::default();
        for bytes in [&b"one\ntw"[..], b"o\n\n\x1b[2J", &[b'x'; 5000], b"\nlast"] {
            lines.take(bytes, |line| said.push(line.to_owned()));
        }
        lines.flush(|line| said.push(line.to_owned()));
        assert_eq!(said.len(), 4);
        assert_eq!((said[0].as_str(), said[1].as_str(), said[3].as_str()), ("one", "two", "last"));
        assert!(said[2].starts_with("\\u{1b}[2Jxxx") && said[2].len() < LINE_MAX + 20);
    }

    #[test]
    fn a_long_log_is_cut_and_still_tells_its_end() {
        let mut log = Log::default();
        for number in 0..LINES_MAX + 10 {
            log.say(LogLevel::Info, BuildPlace::Step(1), &number.to_string());
        }
        log.failure(&BuildFailure { place: BuildPlace::Step(1), message: "it failed".to_owned(), unknown_user: None });
        let lines = log.lines(LINES_MAX - 3, usize::MAX);
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["4997", "12 more lines were left out", "it failed"]);
    }
}
