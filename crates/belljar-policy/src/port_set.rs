//! The ports of a compiled rule: the few that most have are found where the rule is, without another wait for memory.

use crate::PortRange;

/// How many are in place.
const NEAR: usize = 3;

/// A range with no port in it.
const NONE: PortRange = PortRange { first: 1, last: 0 };

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PortSet {
    near: [PortRange; NEAR],
    more: Box<[PortRange]>,
}

impl PortSet {
    pub(crate) fn new(ranges: &[PortRange]) -> Self {
        let (first, rest) = ranges.split_at(ranges.len().min(NEAR));
        let mut near = [NONE; NEAR];
        near.iter_mut().zip(first).for_each(|(place, range)| *place = *range);
        Self { near, more: rest.into() }
    }

    pub(crate) fn contains(&self, port: u16) -> bool {
        self.ranges().any(|range| range.contains(port))
    }

    /// Whether one range has all of `other`.
    pub(crate) fn covers(&self, other: &PortRange) -> bool {
        self.ranges().any(|range| range.covers(other))
    }

    fn ranges(&self) -> impl Iterator<Item = &PortRange> {
        self.near.iter().chain(&*self.more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_found_wherever_its_range_stands_and_an_empty_place_holds_none() {
        let range = |first| PortRange { first, last: first + 9 };
        let set = PortSet::new(&[range(10), range(30), range(50), range(70), range(90)]);
        for port in 0..120 {
            assert_eq!(set.contains(port), port < 100 && port % 20 >= 10, "{port}");
        }
        assert!(set.covers(&PortRange { first: 91, last: 95 }) && !set.covers(&PortRange { first: 15, last: 35 }));
        let nothing = PortSet::new(&[]);
        assert!((0..=u16::MAX).all(|port| !nothing.contains(port)) && !nothing.covers(&PortRange::ALL));
    }
}
