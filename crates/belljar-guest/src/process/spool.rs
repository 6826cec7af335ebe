//! The bytes of one output stream that are still kept, found by their offset since the process began.
//!
//! All spools together stay below [`Budget::LIMIT`]. A spool that may not grow any more behaves as if it were full.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;

/// Memory for all spools.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    used: Cell<usize>,
}

impl Budget {
    /// Bytes that all spools may hold at once.
    pub(crate) const LIMIT: usize = 64 << 20;
    /// What every spool may have, whatever the others hold.
    const SMALLEST: usize = 4096;

    /// Whether the next spool that grows may be refused.
    pub(crate) fn is_tight(&self) -> bool {
        self.used.get() > Self::LIMIT - (2 << 20)
    }

    fn take(&self, bytes: usize) -> bool {
        let fits = self.used.get() + bytes <= Self::LIMIT;
        if fits {
            self.used.set(self.used.get() + bytes);
        }
        fits
    }

    fn give_back(&self, bytes: usize) {
        self.used.set(self.used.get().saturating_sub(bytes));
    }
}

/// What a reader finds at an offset.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing yet.
    Nothing,
    /// The bytes up to this offset are no longer kept.
    Gap(u64),
    /// Bytes.
    Bytes(Bytes),
}

/// One stream's kept bytes.
#[derive(Debug)]
pub(crate) struct Spool {
    ring: VecDeque<u8>,
    start: u64,
    capacity: usize,
    /// What `ring` may hold without asking the budget again.
    granted: usize,
    budget: Rc<Budget>,
}

impl Spool {
    pub(crate) fn new(capacity: usize, budget: Rc<Budget>) -> Self {
        Self { ring: VecDeque::new(), start: 0, capacity, granted: 0, budget }
    }

    /// Offset after the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.ring.len() as u64
    }

    /// How many bytes can be added if what is before `floor` may be forgotten.
    pub(crate) fn room(&mut self, floor: u64) -> usize {
        self.grow();
        let forgettable = usize::try_from(floor.saturating_sub(self.start)).unwrap_or(usize::MAX).min(self.ring.len());
        (self.limit() + forgettable).saturating_sub(self.ring.len())
    }

    /// Adds bytes, forgetting the oldest as far as needed. `extra` is how far the capacity may be passed.
    pub(crate) fn push(&mut self, bytes: &[u8], extra: usize) {
        let limit = self.limit() + extra;
        let skipped = bytes.len().saturating_sub(limit);
        let bytes = bytes.get(skipped..).unwrap_or_default();
        let too_many = (self.ring.len() + bytes.len()).saturating_sub(limit);
        if skipped > 0 {
            self.start = self.end() + skipped as u64;
            self.ring.clear();
        } else {
            self.ring.drain(..too_many);
            self.start += too_many as u64;
        }
        self.ring.extend(bytes);
    }

    /// What is at `from`, at most `most` bytes.
    pub(crate) fn read(&self, from: u64, most: usize) -> Found {
        if from < self.start {
            return Found::Gap(self.start);
        }
        let Ok(skip) = usize::try_from(from - self.start) else { return Found::Nothing };
        if skip >= self.ring.len() {
            return Found::Nothing;
        }
        let (front, back) = self.ring.as_slices();
        let piece = match front.get(skip..) {
            Some(rest) if !rest.is_empty() => rest,
            _ => back.get(skip - front.len()..).unwrap_or_default(),
        };
        Found::Bytes(Bytes::copy_from_slice(piece.get(..most).unwrap_or(piece)))
    }

    /// Forgets everything and gives the memory back; offsets go on counting.
    pub(crate) fn clear(&mut self) {
        self.start = self.end();
        self.ring = VecDeque::new();
        self.capacity = 0;
        self.budget.give_back(self.granted);
        self.granted = 0;
    }

    fn limit(&self) -> usize {
        self.granted.max(Budget::SMALLEST).min(self.capacity)
    }

    /// Asks for twice as much when what was granted is nearly full.
    fn grow(&mut self) {
        while self.granted < self.capacity && self.ring.len() + 1024 > self.granted {
            let target = (self.granted * 2).clamp(64 << 10, self.capacity.max(64 << 10)).min(self.capacity);
            if !self.budget.take(target - self.granted) {
                return;
            }
            self.granted = target;
        }
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        self.budget.give_back(self.granted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spool(capacity: usize) -> Spool {
        Spool::new(capacity, Rc::default())
    }

    #[test]
    fn the_oldest_bytes_fall_out_and_the_reader_is_told_which() {
        let mut s = spool(10);
        s.room(0);
        s.push(b"0123456789", 0);
        s.push(b"abc", 0);
        assert_eq!(s.read(0, 99), Found::Gap(3));
        let mut seen = Vec::new();
        let mut at = 3;
        while let Found::Bytes(piece) = s.read(at, 4) {
            at += piece.len() as u64;
            seen.extend_from_slice(&piece);
        }
        assert_eq!((seen.as_slice(), at, s.end()), (&b"3456789abc"[..], 13, 13));
    }

    #[test]
    fn a_write_longer_than_the_spool_keeps_its_end() {
        let mut s = spool(4);
        s.push(b"0123456789", 0);
        assert_eq!((s.read(0, 9), s.read(6, 9), s.end()), (Found::Gap(6), Found::Bytes(Bytes::from_static(b"6789")), 10));
    }

    #[test]
    fn room_counts_what_may_be_forgotten() {
        let mut s = spool(2048);
        assert_eq!(s.room(0), 2048);
        s.push(&[1; 2048], 0);
        assert_eq!((s.room(0), s.room(100)), (0, 100));
        s.push(&[2; 100], 0);
        assert_eq!(s.read(99, 1), Found::Gap(100));
    }

    #[test]
    fn all_spools_together_stay_below_the_limit_and_give_back() {
        let budget = Rc::<Budget>::default();
        let mut spools: Vec<_> = (0..10).map(|_| Spool::new(16 << 20, Rc::clone(&budget))).collect();
        let mut held = 0;
        for s in &mut spools {
            loop {
                let room = s.room(0);
                if room == 0 {
                    break;
                }
                s.push(&vec![0; room], 0);
                held += room;
            }
        }
        assert!(held <= Budget::LIMIT + 10 * Budget::SMALLEST, "{held}");
        assert!(spools.iter_mut().all(|s| s.end() >= 4096));
        drop(spools);
        assert_eq!(budget.used.get(), 0);
    }
}
