//! The head and the tail of a stream that may be longer than anyone wants to have in one answer. Memory is bounded by what is kept.

use std::collections::VecDeque;

use belljar_output::{Cleaner, Hygiene};

use crate::dto::{CleaningView, OmittedView};
use crate::translate::to_base64;

/// Keeps the first and the last bytes.
pub(crate) struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_room: usize,
    tail_room: usize,
    total: u64,
}

impl Kept {
    /// Keeps `room` bytes, half of them from the end.
    pub(crate) fn new(room: usize) -> Self {
        let tail_room = room / 2;
        Self { head: Vec::new(), tail: VecDeque::new(), head_room: room - tail_room, tail_room, total: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(self.head_room - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.tail_room)..];
        let overfull = (self.tail.len() + rest.len()).saturating_sub(self.tail_room);
        self.tail.drain(..overfull);
        self.tail.extend(rest);
    }

    /// Bytes that never came count as left out with those that were not kept.
    pub(crate) fn skip(&mut self, count: u64) {
        self.total = self.total.saturating_add(count);
        self.head_room = self.head.len();
    }

    /// What was kept, how it is written, and what was left out.
    pub(crate) fn finish(self) -> (String, &'static str, Option<OmittedView>) {
        let tail_at = self.total - self.tail.len() as u64;
        let omitted = (tail_at > self.head.len() as u64).then_some(OmittedView { from: self.head.len() as u64, to: tail_at });
        let mut bytes = self.head;
        bytes.extend(self.tail);
        match String::from_utf8(bytes) {
            Ok(text) => (text, "utf-8", omitted),
            Err(error) => (to_base64(error.as_bytes()), "base64", omitted),
        }
    }
}

/// A stream that is kept as it came, or made fit to be read.
pub(crate) enum Gathered {
    AsItCame(Kept),
    Clean(Box<Cleaner>),
}

/// What became of a stream.
pub(crate) struct Whole {
    pub(crate) text: String,
    pub(crate) encoding: &'static str,
    pub(crate) omitted: Option<OmittedView>,
    pub(crate) cleaning: Option<CleaningView>,
}

impl Gathered {
    pub(crate) fn new(room: usize, hygiene: Option<&Hygiene>) -> Self {
        match hygiene {
            None => Self::AsItCame(Kept::new(room)),
            Some(hygiene) => Self::Clean(Box::new(Cleaner::new(hygiene))),
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        match self {
            Self::AsItCame(kept) => kept.push(bytes),
            Self::Clean(cleaner) => cleaner.push(bytes),
        }
    }

    pub(crate) fn skip(&mut self, count: u64) {
        match self {
            Self::AsItCame(kept) => kept.skip(count),
            Self::Clean(cleaner) => cleaner.skip(count),
        }
    }

    pub(crate) fn finish(self) -> Whole {
        match self {
            Self::AsItCame(kept) => {
                let (text, encoding, omitted) = kept.finish();
                Whole { text, encoding, omitted, cleaning: None }
            }
            Self::Clean(cleaner) => {
                let clean = cleaner.finish();
                let omitted = clean.omitted.map(|(from, to)| OmittedView { from, to });
                let cleaning = CleaningView { bytes: clean.bytes, escapes: clean.escapes, masked: clean.masked, invalid: clean.invalid };
                Whole { text: clean.text, encoding: "utf-8", omitted, cleaning: Some(cleaning) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(room: usize, pieces: &[&str]) -> (String, Option<(u64, u64)>) {
        let mut kept = Kept::new(room);
        for piece in pieces {
            kept.push(piece.as_bytes());
        }
        let (text, encoding, omitted) = kept.finish();
        assert_eq!(encoding, "utf-8");
        (text, omitted.map(|omitted| (omitted.from, omitted.to)))
    }

    #[test]
    fn the_first_and_the_last_half_are_kept() {
        assert_eq!(kept(6, &["abc", "def"]), ("abcdef".into(), None));
        assert_eq!(kept(6, &["abcdefgh"]), ("abcfgh".into(), Some((3, 5))));
        assert_eq!(kept(6, &["ab", "cd", "e", "fgh", "ij"]), ("abchij".into(), Some((3, 7))));
        assert_eq!(kept(0, &["abc"]), (String::new(), Some((0, 3))));
        assert_eq!(kept(1, &["abc"]), ("a".into(), Some((1, 3))));
    }

    #[test]
    fn a_gap_is_left_out_too() {
        let mut kept = Kept::new(8);
        kept.push(b"ab");
        kept.skip(10);
        kept.push(b"cd");
        let (text, _, omitted) = kept.finish();
        assert_eq!((text.as_str(), omitted.map(|o| (o.from, o.to))), ("abcd", Some((2, 12))));
    }

    #[test]
    fn bytes_that_are_no_text_are_base64() {
        let mut kept = Kept::new(8);
        kept.push(b"\xff\x00");
        assert_eq!(kept.finish().0, "/wA=");
    }
}
