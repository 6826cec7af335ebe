//! All steps in their order, for one stream.

use crate::bounded::Bounded;
use crate::escapes::{Escapes, Escaping};
use crate::mask::{Mask, Masking};
use crate::text::Decoding;

/// How output is to be treated.
#[derive(Debug, Clone, Default)]
pub struct Hygiene {
    /// What becomes of terminal escapes.
    pub escapes: Escapes,
    /// Which values are masked.
    pub mask: Mask,
    /// How many bytes of text are kept; of more, the first and the last half.
    pub room: usize,
}

/// Output fit to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleaned {
    /// The text.
    pub text: String,
    /// How many bytes came.
    pub bytes: u64,
    /// Which bytes of the clean text are missing between its first and its last part.
    pub omitted: Option<(u64, u64)>,
    /// How many escapes and control characters were taken out or shown.
    pub escapes: u64,
    /// How many times a secret was masked.
    pub masked: u64,
    /// How many times something was not UTF-8.
    pub invalid: u64,
}

/// Cleans one stream, piece by piece.
pub struct Cleaner {
    bytes: u64,
    before: Masking,
    decoding: Decoding,
    escaping: Escaping,
    after: Masking,
    /// Masked text is text again, but a piece may end within a character.
    again: Decoding,
    bounded: Bounded,
}

impl Cleaner {
    /// A cleaner for one stream.
    pub fn new(hygiene: &Hygiene) -> Self {
        Self {
            bytes: 0,
            before: Masking::new(hygiene.mask.clone()),
            decoding: Decoding::default(),
            escaping: Escaping::new(hygiene.escapes),
            after: Masking::new(hygiene.mask.clone()),
            again: Decoding::default(),
            bounded: Bounded::new(hygiene.room),
        }
    }

    /// Takes the next piece.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let mut masked = Vec::new();
        self.before.push(bytes, &mut masked);
        let mut text = String::new();
        self.decoding.push(&masked, &mut text);
        self.pass(&text);
    }

    /// Counts bytes that were lost before they came here.
    pub fn skip(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    fn pass(&mut self, text: &str) {
        let mut plain = String::new();
        self.escaping.push(text, &mut plain);
        self.settle(&plain);
    }

    fn settle(&mut self, plain: &str) {
        let mut masked = Vec::new();
        self.after.push(plain.as_bytes(), &mut masked);
        self.keep(&masked);
    }

    fn keep(&mut self, masked: &[u8]) {
        let mut text = String::new();
        self.again.push(masked, &mut text);
        self.bounded.push(&text);
    }

    /// Everything that came, clean.
    pub fn finish(mut self) -> Cleaned {
        let mut masked = Vec::new();
        self.before.finish(&mut masked);
        let mut text = String::new();
        self.decoding.push(&masked, &mut text);
        self.decoding.finish(&mut text);
        self.pass(&text);
        let mut rest = String::new();
        self.escaping.finish(&mut rest);
        self.settle(&rest);
        let mut last = Vec::new();
        self.after.finish(&mut last);
        self.keep(&last);
        let (text, omitted) = self.bounded.finish();
        let masked = self.before.masked + self.after.masked;
        Cleaned { text, bytes: self.bytes, omitted, escapes: self.escaping.found, masked, invalid: self.decoding.invalid }
    }
}

#[cfg(test)]
mod tests;
