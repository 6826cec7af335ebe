//! Bytes that should be UTF-8, as text: what is not is replaced and counted, and a character is never cut in two by the border of a piece.

/// Decoding of one stream.
#[derive(Default)]
pub(crate) struct Decoding {
    held: Vec<u8>,
    pub(crate) invalid: u64,
}

impl Decoding {
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut String) {
        self.held.extend_from_slice(bytes);
        let unfinished = unfinished_at_end(&self.held);
        let whole = self.held.len() - unfinished;
        self.give(whole, out);
    }

    pub(crate) fn finish(&mut self, out: &mut String) {
        let all = self.held.len();
        self.give(all, out);
    }

    fn give(&mut self, whole: usize, out: &mut String) {
        for chunk in self.held.get(..whole).unwrap_or_default().utf8_chunks() {
            out.push_str(chunk.valid());
            if !chunk.invalid().is_empty() {
                out.push(char::REPLACEMENT_CHARACTER);
                self.invalid += 1;
            }
        }
        self.held.drain(..whole);
    }
}

/// How many bytes at the end are the beginning of a character whose rest may still come.
fn unfinished_at_end(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Ok(_) => 0,
        Err(_) => {
            let last = bytes.utf8_chunks().last().map_or(0, |chunk| chunk.invalid().len());
            let tail = bytes.get(bytes.len() - last..).unwrap_or_default();
            // An error without a length is one that more bytes could mend.
            match std::str::from_utf8(tail) {
                Err(error) if error.error_len().is_none() => last,
                _ => 0,
            }
        }
    }
}
