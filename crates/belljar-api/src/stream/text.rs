//! Output as text that is never cut inside a character.
//!
//! A piece of output ends where the pipe happened to end, which may be inside a character. Its first bytes are held back (at most three) until the
//! rest comes, so that text stays text. A piece that holds bytes which are no UTF-8 is given whole, in base64.

/// What can be given now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text { offset: u64, text: String },
    Binary { offset: u64, bytes: Vec<u8> },
}

impl Piece {
    /// The offset after it.
    pub(crate) fn end(&self) -> u64 {
        match self {
            Self::Text { offset, text } => offset + text.len() as u64,
            Self::Binary { offset, bytes } => offset + bytes.len() as u64,
        }
    }
}

/// One stream of a process.
#[derive(Debug, Default)]
pub(crate) struct TextPieces {
    held: Vec<u8>,
    held_at: u64,
}

impl TextPieces {
    /// Takes the next bytes. What was held back comes first.
    pub(crate) fn take(&mut self, offset: u64, bytes: &[u8]) -> Option<Piece> {
        let (offset, all) = if self.held.is_empty() {
            (offset, bytes.to_vec())
        } else {
            let mut all = std::mem::take(&mut self.held);
            all.extend_from_slice(bytes);
            (self.held_at, all)
        };
        match String::from_utf8(all) {
            Ok(text) => (!text.is_empty()).then_some(Piece::Text { offset, text }),
            Err(error) => {
                let (cut, is_open) = (error.utf8_error().valid_up_to(), error.utf8_error().error_len().is_none());
                let mut bytes = error.into_bytes();
                if !is_open {
                    return Some(Piece::Binary { offset, bytes });
                }
                self.held = bytes.split_off(cut);
                self.held_at = offset + cut as u64;
                let text = String::from_utf8(bytes).unwrap_or_default();
                (!text.is_empty()).then_some(Piece::Text { offset, text })
            }
        }
    }

    /// What is still held back when nothing follows.
    pub(crate) fn finish(&mut self) -> Option<Piece> {
        let bytes = std::mem::take(&mut self.held);
        (!bytes.is_empty()).then_some(Piece::Binary { offset: self.held_at, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(offset: u64, text: &str) -> Option<Piece> {
        Some(Piece::Text { offset, text: text.to_owned() })
    }

    fn binary(offset: u64, bytes: &[u8]) -> Option<Piece> {
        Some(Piece::Binary { offset, bytes: bytes.to_vec() })
    }

    #[test]
    fn a_character_is_never_cut_in_two() {
        let whole = "aé日🦀z";
        for cut in 0..=whole.len() {
            let (first, second) = whole.as_bytes().split_at(cut);
            let mut pieces = TextPieces::default();
            let given: Vec<Piece> =
                [pieces.take(10, first), pieces.take(10 + cut as u64, second), pieces.finish()].into_iter().flatten().collect();
            let mut at = 10;
            let mut joined = String::new();
            for piece in given {
                let Piece::Text { offset, text } = &piece else { panic!("cut at {cut}: {piece:?}") };
                assert_eq!(*offset, at);
                joined.push_str(text);
                at = piece.end();
            }
            assert_eq!(joined, whole);
        }
    }

    #[test]
    fn what_is_no_text_is_given_as_it_is() {
        let mut pieces = TextPieces::default();
        assert_eq!(pieces.take(0, b"a\xffb"), binary(0, b"a\xffb"));
        assert_eq!(pieces.take(3, b"ok\xe6"), text(3, "ok"));
        assert_eq!(pieces.take(6, b"\xffx"), binary(5, b"\xe6\xffx"));
        assert_eq!(pieces.take(8, b"\xf0\x9f"), None);
        assert_eq!(pieces.finish(), binary(8, b"\xf0\x9f"));
        assert_eq!(pieces.finish(), None);
    }
}
