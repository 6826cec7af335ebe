//! Names to rules, compact: thousands of policies with thousands of rules each are in memory at once, and every connection asks.
//!
//! One open-addressing table over all names. A name is hashed from its end, so that one pass gives the hash of every suffix, and the
//! question costs one probe a label. The hash is keyed: a guest that chooses names cannot aim them at one place.

use std::hash::{BuildHasher, RandomState};

#[derive(Debug, Clone, Copy)]
struct Entry {
    name: u32,
    refs: u32,
    count: u32,
    length: u8,
    below: bool,
}

#[derive(Debug)]
pub(crate) struct Table {
    seed: u64,
    /// Upper half: part of the hash; lower half: index of the entry and one; 0 is empty. A power of two of them.
    slots: Box<[u64]>,
    entries: Box<[Entry]>,
    names: Box<[u8]>,
    refs: Box<[u32]>,
}

impl Table {
    /// From names, whether what is below them is meant, and the number of the rule.
    pub(crate) fn build(mut rows: Vec<(&str, bool, u32)>) -> Self {
        rows.sort_unstable();
        rows.dedup();
        let seed = RandomState::new().hash_one(0u64);
        let (mut entries, mut names, mut refs): (Vec<Entry>, Vec<u8>, Vec<u32>) = (Vec::new(), Vec::new(), Vec::new());
        let mut previous: Option<(&str, bool)> = None;
        for (name, below, rule) in rows {
            if previous != Some((name, below)) {
                let length = u8::try_from(name.len()).unwrap_or(u8::MAX);
                entries.push(Entry { name: index(names.len()), refs: index(refs.len()), count: 0, length, below });
                names.extend_from_slice(name.as_bytes());
                previous = Some((name, below));
            }
            refs.push(rule);
            if let Some(entry) = entries.last_mut() {
                entry.count += 1;
            }
        }
        let mut slots = vec![0; (entries.len() * 2).next_power_of_two().max(2)];
        let mask = slots.len() - 1;
        for (number, entry) in entries.iter().enumerate() {
            let start = entry.name as usize;
            let hash = finish(fold(seed, &names[start..start + usize::from(entry.length)]), entry.below);
            let mut place = hash as usize & mask;
            while slots[place] != 0 {
                place = (place + 1) & mask;
            }
            slots[place] = (hash & TAG) | u64::from(index(number + 1));
        }
        Self { seed, slots: slots.into(), entries: entries.into(), names: names.into(), refs: refs.into() }
    }

    /// Hands over the rules for a name: those for the name itself, then those for what is below each of its suffixes.
    pub(crate) fn matching(&self, name: &str, mut each: impl FnMut(u32)) {
        let bytes = name.as_bytes();
        let mut hash = self.seed;
        for (place, byte) in bytes.iter().enumerate().rev() {
            if *byte == b'.' {
                let suffix = bytes.get(place + 1..).unwrap_or_default();
                self.find(finish(hash, true), suffix, true).iter().for_each(|rule| each(*rule));
            }
            hash = step(hash, *byte);
        }
        self.find(finish(hash, false), bytes, false).iter().for_each(|rule| each(*rule));
    }

    fn find(&self, hash: u64, name: &[u8], below: bool) -> &[u32] {
        let mask = self.slots.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let Some(slot) = self.slots.get(place).copied().filter(|slot| *slot != 0) else { return &[] };
            if slot & TAG == hash & TAG
                && let Some(entry) = self.entries.get((slot as u32 - 1) as usize)
                && entry.below == below
                && self.names.get(entry.name as usize..entry.name as usize + usize::from(entry.length)) == Some(name)
            {
                return self.refs.get(entry.refs as usize..(entry.refs + entry.count) as usize).unwrap_or_default();
            }
            place = (place + 1) & mask;
        }
    }
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
        let table = Table::build(vec![
            ("a.test", false, 1),
            ("a.test", true, 2),
            ("b.a.test", false, 3),
            ("a.test", false, 4),
            ("b.a.test", true, 5),
        ]);
        let ask = |name: &str| {
            let mut found = Vec::new();
            table.matching(name, |rule| found.push(rule));
            found.sort_unstable();
            found
        };
        assert_eq!(ask("a.test"), [1, 4]);
        assert_eq!(ask("b.a.test"), [2, 3]);
        assert_eq!(ask("c.b.a.test"), [2, 5]);
        assert!(ask("xa.test").is_empty());
        assert!(ask("test").is_empty());
        assert!(Table::build(Vec::new()).find(7, b"x", false).is_empty());
    }
}
