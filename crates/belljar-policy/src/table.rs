//! Names to rules, compact: thousands of policies with thousands of rules each are in memory at once, and every connection asks.
//!
//! One open-addressing table over all names. A name is hashed from its end, so that one pass gives the hash of every suffix, and the
//! question costs one probe a label. The hash is keyed: a guest that chooses names cannot aim them at one place.
//!
//! With so many tables none is in a cache, so what counts is how often memory is waited for: the probes of all labels go out before any is looked
//! at, and a name's only rule stands in front of the name, with its shape.

use std::hash::{BuildHasher, RandomState};

/// Labels whose probes go out together; hardly a name has more.
const TOGETHER: usize = 8;

/// A rule by its number, and what it is like: whoever has found it need not read the rule itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reference {
    pub(crate) rule: u32,
    pub(crate) shape: u32,
}

#[derive(Debug)]
pub(crate) struct Table {
    seed: u64,
    /// Upper half: part of the hash; lower half: where the entry begins and one; 0 is empty. A power of two of them.
    slots: Box<[u64]>,
    /// Each an [`Entry`] with its name behind it.
    entries: Box<[u8]>,
    /// The rules of names that have several.
    more: Box<[Reference]>,
}

/// What stands in front of a name.
struct Entry {
    /// How many rules it has.
    count: u32,
    /// The rule, if it is the only one; else `rule` is where its rules begin among `more`.
    first: Reference,
    below: bool,
    length: u8,
}

impl Entry {
    const BYTES: usize = 14;

    fn write(&self, to: &mut Vec<u8>) {
        for number in [self.count, self.first.rule, self.first.shape] {
            to.extend_from_slice(&number.to_ne_bytes());
        }
        to.extend_from_slice(&[u8::from(self.below), self.length]);
    }

    /// The entry that begins here, and its name.
    fn read(from: &[u8]) -> Option<(Self, &[u8])> {
        let (head, rest) = from.split_first_chunk::<{ Self::BYTES }>()?;
        let [c0, c1, c2, c3, r0, r1, r2, r3, s0, s1, s2, s3, below, length] = *head;
        let first = Reference { rule: u32::from_ne_bytes([r0, r1, r2, r3]), shape: u32::from_ne_bytes([s0, s1, s2, s3]) };
        let entry = Self { count: u32::from_ne_bytes([c0, c1, c2, c3]), first, below: below != 0, length };
        Some((entry, rest.get(..usize::from(length))?))
    }
}

impl Table {
    /// From names, whether what is below them is meant, and the rule.
    pub(crate) fn build(mut rows: Vec<(&str, bool, Reference)>) -> Self {
        rows.sort_unstable();
        rows.dedup();
        let seed = RandomState::new().hash_one(0u64);
        let groups: Vec<_> = rows.chunk_by(|one, next| (one.0, one.1) == (next.0, next.1)).collect();
        let mut slots = vec![0; (groups.len() * 2).next_power_of_two().max(2)];
        let mask = slots.len() - 1;
        let (mut entries, mut more) = (Vec::new(), Vec::new());
        for group in groups {
            let [(name, below, only), others @ ..] = group else { continue };
            let first = if others.is_empty() { *only } else { Reference { rule: index(more.len()), shape: 0 } };
            if !others.is_empty() {
                more.extend(group.iter().map(|row| row.2));
            }
            let hash = finish(fold(seed, name.as_bytes()), *below);
            let mut place = hash as usize & mask;
            while slots[place] != 0 {
                place = (place + 1) & mask;
            }
            slots[place] = (hash & TAG) | u64::from(index(entries.len() + 1));
            let length = u8::try_from(name.len()).unwrap_or(u8::MAX);
            Entry { count: index(group.len()), first, below: *below, length }.write(&mut entries);
            entries.extend_from_slice(name.as_bytes());
        }
        Self { seed, slots: slots.into(), entries: entries.into(), more: more.into() }
    }

    /// Hands over the rules for a name: those for the name itself, then those for what is below each of its suffixes.
    pub(crate) fn matching(&self, name: &str, mut each: impl FnMut(Reference)) {
        let bytes = name.as_bytes();
        let mut hash = self.seed;
        let (mut probes, mut count) = ([Probe::default(); TOGETHER], 0);
        for (place, byte) in bytes.iter().enumerate().rev() {
            if *byte == b'.' {
                self.send_out(&mut probes, &mut count, finish(hash, true), place + 1, bytes, &mut each);
            }
            hash = step(hash, *byte);
        }
        // No name is below itself: the whole name is asked for in the other way.
        self.send_out(&mut probes, &mut count, finish(hash, false), 0, bytes, &mut each);
        self.look_at(probes.get(..count).unwrap_or_default(), bytes, &mut each);
    }

    fn send_out(
        &self,
        probes: &mut [Probe; TOGETHER],
        count: &mut usize,
        hash: u64,
        start: usize,
        name: &[u8],
        each: &mut impl FnMut(Reference),
    ) {
        if *count == TOGETHER {
            self.look_at(probes, name, each);
            *count = 0;
        }
        let first = self.slots.get(hash as usize & (self.slots.len() - 1)).copied().unwrap_or(0);
        if let Some(probe) = probes.get_mut(*count) {
            *probe = Probe { hash, start, first };
            *count += 1;
        }
    }

    fn look_at(&self, probes: &[Probe], name: &[u8], each: &mut impl FnMut(Reference)) {
        for probe in probes.iter().filter(|probe| probe.first != 0) {
            let suffix = name.get(probe.start..).unwrap_or_default();
            match self.find(probe, suffix, probe.start != 0) {
                Some(entry) if entry.count == 1 => each(entry.first),
                Some(entry) => {
                    let start = entry.first.rule as usize;
                    let rules = self.more.get(start..start + entry.count as usize);
                    rules.unwrap_or_default().iter().for_each(|rule| each(*rule));
                }
                None => {}
            }
        }
    }

    fn find(&self, probe: &Probe, name: &[u8], below: bool) -> Option<Entry> {
        let mask = self.slots.len() - 1;
        let (mut place, mut slot) = (probe.hash as usize & mask, probe.first);
        while slot != 0 {
            if slot & TAG == probe.hash & TAG
                && let Some((entry, found)) = self.entries.get((slot as u32 - 1) as usize..).and_then(Entry::read)
                && entry.below == below
                && found == name
            {
                return Some(entry);
            }
            place = (place + 1) & mask;
            slot = self.slots.get(place).copied()?;
        }
        None
    }
}

/// A question that is under way: a suffix by its start, and what is in the first place where it may be.
#[derive(Debug, Clone, Copy, Default)]
struct Probe {
    hash: u64,
    start: usize,
    first: u64,
}

const TAG: u64 = 0xffff_ffff_0000_0000;

/// Names of all rules of one document are far below four gigabytes: the document itself is bounded.
fn index(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn step(hash: u64, byte: u8) -> u64 {
    let wide = u128::from(hash ^ u64::from(byte)) * 0x9e37_79b9_7f4a_7c15_u128;
    (wide as u64) ^ ((wide >> 64) as u64)
}

fn fold(seed: u64, name: &[u8]) -> u64 {
    name.iter().rev().fold(seed, |hash, byte| step(hash, *byte))
}

fn finish(hash: u64, below: bool) -> u64 {
    step(hash ^ 0xa076_1d64_78bd_642f, u8::from(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_finds_itself_and_what_stands_above_it() {
        let row = |name, below, rule| (name, below, Reference { rule, shape: rule + 10 });
        let table = Table::build(vec![
            row("a.test", false, 1),
            row("a.test", true, 2),
            row("b.a.test", false, 3),
            row("a.test", false, 4),
            row("b.a.test", true, 5),
        ]);
        let ask = |name: &str| {
            let mut found = Vec::new();
            table.matching(name, |found_one| {
                assert_eq!(found_one.shape, found_one.rule + 10);
                found.push(found_one.rule);
            });
            found.sort_unstable();
            found
        };
        assert_eq!(ask("a.test"), [1, 4]);
        assert_eq!(ask("b.a.test"), [2, 3]);
        assert_eq!(ask("c.b.a.test"), [2, 5]);
        assert!(ask("xa.test").is_empty());
        assert!(ask("test").is_empty());
        Table::build(Vec::new()).matching("x", |rule| panic!("found {rule:?} in nothing"));
        let deep = format!("{}a.test", "x.".repeat(40));
        assert_eq!(ask(&deep), [2], "more labels than are asked about together");
    }
}
