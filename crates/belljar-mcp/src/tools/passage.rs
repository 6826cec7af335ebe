//! A passage of a text: some of its lines, or one that is replaced. In memory no more than is given.

/// Collects lines from the n-th on, until there are enough of them or enough bytes.
pub(super) struct Passage {
    first: u64,
    most_lines: u64,
    room: usize,
    /// The line that is being read, counted from 1.
    line: u64,
    kept: Vec<u8>,
    is_full: bool,
}

impl Passage {
    pub(super) fn new(first: u64, most_lines: u64, room: usize) -> Self {
        Self { first, most_lines, room, line: 1, kept: Vec::new(), is_full: false }
    }

    /// Whether nothing more is wanted.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.is_full || piece.is_empty() {
                return;
            }
            if self.line >= self.first {
                if self.line - self.first >= self.most_lines {
                    self.is_full = true;
                    return;
                }
                let left = self.room - self.kept.len();
                self.kept.extend_from_slice(&piece[..piece.len().min(left)]);
                if piece.len() > left {
                    self.is_full = true;
                    return;
                }
            }
            self.line += u64::from(piece.ends_with(b"\n"));
        }
    }

    /// Whole lines, and a note where there is more than they. Of a line that alone is too long, its beginning.
    pub(super) fn finish(mut self) -> (Vec<u8>, String) {
        if !self.is_full {
            let note = match (self.kept.is_empty(), self.first) {
                (false, _) => String::new(),
                (true, 1) => "[the file is empty]".to_owned(),
                (true, first) => format!("[there is no line {first}]"),
            };
            return (self.kept, note);
        }
        match self.kept.iter().rposition(|byte| *byte == b'\n') {
            None if !self.kept.is_empty() => {
                let note = format!("\n[line {} is longer than fits here; use run_command, with cut for example]", self.line);
                return (self.kept, note);
            }
            end => self.kept.truncate(end.map_or(0, |end| end + 1)),
        }
        (self.kept, format!("[there is more: go on with first_line {}]", self.line))
    }
}

/// A text with a passage replaced; else how often the passage is there, and what to do.
pub(super) fn replaced(text: &str, old: &str, new: &str, all: bool) -> Result<String, (usize, &'static str)> {
    if old.is_empty() {
        return Err((0, "old_text is empty: give the passage to replace, or use write_file"));
    }
    match text.matches(old).count() {
        0 => Err((0, "read the file and copy the passage exactly, spaces and line breaks included")),
        1 => Ok(text.replacen(old, new, 1)),
        _ if all => Ok(text.replace(old, new)),
        found => Err((found, "give more of the lines around it, or set `all`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(first: u64, most: u64, room: usize, pieces: &[&str]) -> (String, String) {
        let mut passage = Passage::new(first, most, room);
        pieces.iter().for_each(|piece| passage.push(piece.as_bytes()));
        let (bytes, note) = passage.finish();
        (String::from_utf8(bytes).unwrap(), note)
    }

    #[test]
    fn lines_are_counted_however_they_come() {
        let told = |text: &str, note: &str| (text.to_owned(), note.to_owned());
        assert_eq!(passage(1, 9, 99, &["a\nb\n"]), told("a\nb\n", ""));
        assert_eq!(passage(2, 1, 99, &["a", "a\nb", "b\nc"]), told("bb\n", "[there is more: go on with first_line 3]"));
        assert_eq!(passage(2, 1, 99, &["a\nb\n"]), told("b\n", ""));
        assert_eq!(passage(3, 1, 99, &["a\nb\n"]), told("", "[there is no line 3]"));
        assert_eq!(passage(1, 9, 99, &[""]), told("", "[the file is empty]"));
        assert_eq!(passage(1, 9, 3, &["abcd\ne"]).0, "abc");
        assert!(passage(1, 9, 3, &["abcd\ne"]).1.contains("line 1 is longer than fits here"));
        assert_eq!(passage(1, 9, 5, &["a\nb\ncde\n"]), told("a\nb\n", "[there is more: go on with first_line 3]"));
        assert_eq!(passage(1, 9, 4, &["a\nb\nc\n"]), told("a\nb\n", "[there is more: go on with first_line 3]"));
        assert_eq!(passage(1, 0, 4, &["a\n"]), told("", "[there is more: go on with first_line 1]"));
    }

    #[test]
    fn a_passage_is_replaced_once_or_wherever_it_is_or_not_at_all() {
        assert_eq!(replaced("abc", "b", "x", false).unwrap(), "axc");
        assert_eq!(replaced("abab", "b", "x", true).unwrap(), "axax");
        assert_eq!(replaced("abab", "b", "x", false).unwrap_err().0, 2);
        assert_eq!(replaced("abab", "c", "x", true).unwrap_err().0, 0);
        assert_eq!(replaced("abab", "", "x", true).unwrap_err().0, 0);
    }
}
