//! The first and the last of a text of any length, and how much is missing between.

use std::collections::VecDeque;

/// The head and the tail of what was pushed.
pub(crate) struct Bounded {
    head: String,
    tail: VecDeque<char>,
    tail_bytes: usize,
    half: usize,
    total: u64,
}

impl Bounded {
    pub(crate) fn new(room: usize) -> Self {
        Self { head: String::new(), tail: VecDeque::new(), tail_bytes: 0, half: room / 2, total: 0 }
    }

    pub(crate) fn push(&mut self, text: &str) {
        for c in text.chars() {
            self.total += c.len_utf8() as u64;
            if self.tail.is_empty() && self.head.len() + c.len_utf8() <= self.half {
                self.head.push(c);
                continue;
            }
            self.tail.push_back(c);
            self.tail_bytes += c.len_utf8();
            while self.tail_bytes > self.half {
                let Some(first) = self.tail.pop_front() else { break };
                self.tail_bytes -= first.len_utf8();
            }
        }
    }

    /// The text, and which bytes of it are missing between its two parts.
    pub(crate) fn finish(self) -> (String, Option<(u64, u64)>) {
        let kept = (self.head.len() + self.tail_bytes) as u64;
        let from = self.head.len() as u64;
        let mut text = self.head;
        text.extend(self.tail);
        (text, (kept < self.total).then(|| (from, from + self.total - kept)))
    }
}
