//! Names to rules, compact: thousands of policies with thousands of rules each are in memory at once, and every connection asks.
//!
//! One open-addressing table over all names. A name is hashed from its end, so that one pass gives the hash of every suffix, and the
//! question costs one probe a label. The hash is keyed: a guest that chooses names cannot aim them at one place.
//!
//! With so many tables none is in a cache, so what counts is how often memory is waited for: the probes of all labels go out before any is looked
//! at, and a name's only rule is found where the name is.

use std::hash::{BuildHasher, RandomState};

/// Labels whose probes go out together; hardly a name has more.
const TOGETHER: usize = 8;

#[derive(Debug, Clone, Copy)]
struct Entry {
    name: u32,
    /// The rule, if there is one; else where its rules begin.
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
                entries.push(Entry { name: index(names.len()), refs: 0, count: 0, length, below });
                names.extend_from_slice(name.as_bytes());
                previous = Some((name, below));
            }
            let Some(entry) = entries.last_mut() else { continue };
            entry.count += 1;
            match entry.count {
                1 => entry.refs = rule,
                2 => {
                    let first = std::mem::replace(&mut entry.refs, index(refs.len()));
                    refs.extend([first, rule]);
                }
                _ => refs.push(rule),
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
        each: &mut impl FnMut(u32),
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

    fn look_at(&self, probes: &[Probe], name: &[u8], each: &mut impl FnMut(u32)) {
        for probe in probes.iter().filter(|probe| probe.first != 0) {
            let suffix = name.get(probe.start..).unwrap_or_default();
            match self.find(probe, suffix, probe.start != 0) {
                Some(entry) if entry.count == 1 => each(entry.refs),
                Some(entry) => {
                    let rules = self.refs.get(entry.refs as usize..(entry.refs + entry.count) as usize);
                    rules.unwrap_or_default().iter().for_each(|rule| each(*rule));
                }
                None => {}
            }
        }
    }

    fn find(&self, probe: &Probe, name: &[u8], below: bool) -> Option<&Entry> {
        let mask = self.slots.len() - 1;
        let (mut place, mut slot) = (probe.hash as usize & mask, probe.first);
        while slot != 0 {
            if slot & TAG == probe.hash & TAG
                && let Some(entry) = self.entries.get((slot as u32 - 1) as usize)
                && entry.below == below
                && self.names.get(entry.name as usize..entry.name as usize + usize::from(entry.length)) == Some(name)
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
        Table::build(Vec::new()).matching("x", |rule| panic!("found {rule} in nothing"));
        let deep = format!("{}a.test", "x.".repeat(40));
        assert_eq!(ask(&deep), [2], "more labels than are asked about together");
    }
}
