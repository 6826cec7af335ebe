//! Known secret values, replaced wherever they stand: as they are, in hexadecimal and in base64, also across the borders of pieces.

use belljar_types::Secret;

/// What stands in a secret's place.
const MASKED: &[u8] = b"***";
/// A shorter value is no secret, and masking it would eat ordinary words.
const SHORTEST: usize = 6;

/// The values to mask, in every form in which they are looked for.
#[derive(Clone, Default)]
pub struct Mask {
    /// Longest first, so that a secret that begins with another is masked whole.
    patterns: Vec<Vec<u8>>,
    begins: Vec<bool>,
    longest: usize,
}

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mask({} patterns)", self.patterns.len())
    }
}

impl Mask {
    /// Masks these values. Those of fewer than six bytes are left out.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret<String>>) -> Self {
        let mut patterns: Vec<Vec<u8>> = Vec::new();
        for secret in secrets {
            let value = secret.reveal().as_bytes();
            if value.len() >= SHORTEST {
                let digits = belljar_types::hex(value);
                patterns.extend([value.to_vec(), digits.to_uppercase().into_bytes(), digits.into_bytes(), base64(value)]);
            }
        }
        patterns.sort_by_key(|pattern| std::cmp::Reverse(pattern.len()));
        let mut begins = vec![false; 256];
        for first in patterns.iter().filter_map(|pattern| pattern.first()) {
            if let Some(begins) = begins.get_mut(usize::from(*first)) {
                *begins = true;
            }
        }
        let longest = patterns.first().map_or(0, Vec::len);
        Self { patterns, begins, longest }
    }

    fn at(&self, bytes: &[u8]) -> Option<usize> {
        let first = bytes.first()?;
        if !self.begins.get(usize::from(*first)).copied().unwrap_or(false) {
            return None;
        }
        self.patterns.iter().find(|pattern| bytes.starts_with(pattern)).map(Vec::len)
    }
}

/// Whole groups of three bytes in base64, without the characters at the end that depend on what comes after.
fn base64(value: &[u8]) -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = Vec::new();
    for group in value.chunks_exact(3) {
        let number = group.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
        for shift in [18, 12, 6, 0] {
            text.extend(ALPHABET.get((number >> shift & 63) as usize));
        }
    }
    text
}

/// Masking of one stream.
pub(crate) struct Masking {
    mask: Mask,
    /// What may be the beginning of a secret.
    held: Vec<u8>,
    pub(crate) masked: u64,
}

impl Masking {
    pub(crate) fn new(mask: Mask) -> Self {
        Self { mask, held: Vec::new(), masked: 0 }
    }

    /// Gives on what cannot be part of a secret any more.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if self.mask.longest == 0 {
            out.extend_from_slice(bytes);
            return;
        }
        self.held.extend_from_slice(bytes);
        let settled = self.held.len().saturating_sub(self.mask.longest - 1);
        self.give(settled, out);
    }

    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        let all = self.held.len();
        self.give(all, out);
    }

    /// Everything that begins before `settled`.
    fn give(&mut self, settled: usize, out: &mut Vec<u8>) {
        let mut at = 0;
        while at < settled {
            let rest = self.held.get(at..).unwrap_or_default();
            match self.mask.at(rest) {
                Some(length) => {
                    out.extend_from_slice(MASKED);
                    self.masked += 1;
                    at += length;
                }
                None => {
                    out.extend(rest.first());
                    at += 1;
                }
            }
        }
        self.held.drain(..at.min(self.held.len()));
    }
}
