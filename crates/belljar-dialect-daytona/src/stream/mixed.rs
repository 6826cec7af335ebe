//! What a program says on its two outputs, in the order in which it said it, up to a bound: it may say it a byte at a time, on both in turns.
//!
//! In Daytona's logs the two are one stream, in which three bytes before each stretch say which of the two it is.

use belljar_types::StreamKind;

/// The most that is kept of what one program says.
pub(crate) const MOST_OUTPUT: usize = 32 << 20;
/// What a stretch takes beside its bytes.
const STRETCH: usize = size_of::<(StreamKind, Vec<u8>)>() + 16;
const STDOUT_MARK: [u8; 3] = [1; 3];
const STDERR_MARK: [u8; 3] = [2; 3];

/// A piece with its mark.
pub(crate) fn marked(kind: StreamKind, bytes: &[u8]) -> Vec<u8> {
    let mark = match kind {
        StreamKind::Stdout => STDOUT_MARK,
        StreamKind::Stderr => STDERR_MARK,
    };
    [&mark, bytes].concat()
}

/// Everything that was said.
#[derive(Debug, Default)]
pub(crate) struct Mixed {
    stretches: Vec<(StreamKind, Vec<u8>)>,
    weight: usize,
}

impl Mixed {
    /// Keeps what is said, unless that is more than may be kept: then it says so.
    pub(crate) fn push(&mut self, kind: StreamKind, bytes: &[u8]) -> bool {
        let goes_on = self.stretches.last().is_some_and(|(last, _)| *last == kind);
        self.weight += bytes.len() + if goes_on { 0 } else { STRETCH };
        if self.weight > MOST_OUTPUT {
            return false;
        }
        match self.stretches.last_mut() {
            Some((_, stretch)) if goes_on => stretch.extend_from_slice(bytes),
            _ => self.stretches.push((kind, bytes.to_vec())),
        }
        true
    }

    /// All of it.
    pub(crate) fn text(&self) -> String {
        self.joined(|_, bytes| bytes.to_vec())
    }

    /// What was said on one output.
    pub(crate) fn only(&self, wanted: StreamKind) -> String {
        self.joined(|kind, bytes| if kind == wanted { bytes.to_vec() } else { Vec::new() })
    }

    /// All of it, with marks.
    pub(crate) fn marked(&self) -> String {
        self.joined(marked)
    }

    fn joined(&self, part: impl Fn(StreamKind, &[u8]) -> Vec<u8>) -> String {
        let all: Vec<u8> = self.stretches.iter().flat_map(|(kind, bytes)| part(*kind, bytes)).collect();
        String::from_utf8_lossy(&all).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_told_apart_and_together() {
        let mut said = Mixed::default();
        for (kind, bytes) in [(StreamKind::Stdout, "a"), (StreamKind::Stdout, "b"), (StreamKind::Stderr, "c"), (StreamKind::Stdout, "d")] {
            assert!(said.push(kind, bytes.as_bytes()));
        }
        assert_eq!((said.text(), said.only(StreamKind::Stdout), said.only(StreamKind::Stderr)), ("abcd".into(), "abd".into(), "c".into()));
        assert_eq!(said.marked(), "\u{1}\u{1}\u{1}ab\u{2}\u{2}\u{2}c\u{1}\u{1}\u{1}d");
    }

    #[test]
    fn many_small_pieces_weigh_what_they_take() {
        let mut said = Mixed::default();
        let taken = (0..).take_while(|n| said.push(if n % 2 == 0 { StreamKind::Stdout } else { StreamKind::Stderr }, b"x")).count();
        assert!(taken * STRETCH <= MOST_OUTPUT, "{taken}");
        let mut said = Mixed::default();
        assert!(said.push(StreamKind::Stdout, &vec![0; MOST_OUTPUT / 2]) && !said.push(StreamKind::Stdout, &vec![0; MOST_OUTPUT / 2]));
    }
}
