//! Which address stands for which name in one sandbox.
//!
//! Addresses are out of 198.18.0.0/15 and mean something here only. A name's place is found by its hash, so that it has the same address after a
//! restart of the server. How many new names below wildcards there may be in a minute is bounded, because each can carry a message to whoever owns the
//! zone once it is looked up.

use std::collections::{HashMap, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;

use belljar_policy::HostName;
use tokio::time::Instant;

const FIRST: u32 = u32::from_be_bytes([198, 18, 0, 0]);
const ADDRESSES: u32 = 1 << 17;
/// The oldest is forgotten beyond this.
const MOST_NAMES: usize = 8192;
const MINUTE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct Book {
    places: HashMap<HostName, u32>,
    names: HashMap<u32, HostName>,
    order: VecDeque<u32>,
    recent: VecDeque<Instant>,
}

/// Whether an address stands for a name.
pub(crate) fn stands_for_a_name(address: Ipv4Addr) -> bool {
    (FIRST..FIRST + ADDRESSES).contains(&address.to_bits())
}

impl Book {
    /// The address for a name. `None` if it is new and too many were new in the last minute; `at_most` is unset for names that rules write out.
    pub(crate) fn address(&mut self, name: &HostName, at_most: Option<u32>) -> Option<Ipv4Addr> {
        if let Some(place) = self.places.get(name) {
            return Some(to_address(*place));
        }
        if let Some(most) = at_most {
            let now = Instant::now();
            while self.recent.front().is_some_and(|then| now.duration_since(*then) >= MINUTE) {
                self.recent.pop_front();
            }
            if self.recent.len() >= usize::try_from(most).unwrap_or(usize::MAX) {
                return None;
            }
            self.recent.push_back(now);
        }
        if self.order.len() >= MOST_NAMES
            && let Some(oldest) = self.order.pop_front()
            && let Some(name) = self.names.remove(&oldest)
        {
            self.places.remove(&name);
        }
        let mut place = home(name.as_str());
        while self.names.contains_key(&place) {
            place = next(place);
        }
        self.places.insert(name.clone(), place);
        self.names.insert(place, name.clone());
        self.order.push_back(place);
        Some(to_address(place))
    }

    /// The name an address stands for. One that was given out before a restart is found again among the names that rules write out.
    pub(crate) fn name(&mut self, address: Ipv4Addr, written_out: &[Box<str>]) -> Option<HostName> {
        let place = address.to_bits().checked_sub(FIRST)?;
        if let Some(name) = self.names.get(&place) {
            return Some(name.clone());
        }
        let name = written_out.iter().find(|name| home(name) == place)?;
        let name = HostName::from_wire(name.as_bytes())?;
        self.address(&name, None).filter(|found| *found == address)?;
        Some(name)
    }
}

fn to_address(place: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST + place)
}

/// Neither the first nor the last address, which some programs do not take for a host's.
fn home(name: &str) -> u32 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let hash = name.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    let folded = hash ^ (hash >> 32);
    1 + u32::try_from(folded % u64::from(ADDRESSES - 2)).unwrap_or(0)
}

fn next(place: u32) -> u32 {
    if place + 2 >= ADDRESSES { 1 } else { place + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> HostName {
        HostName::from_wire(text.as_bytes()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_keeps_its_address_and_new_ones_are_counted() {
        let mut book = Book::default();
        let first = book.address(&name("a.test"), None).unwrap();
        assert!(stands_for_a_name(first) && !stands_for_a_name("198.20.0.1".parse().unwrap()));
        assert_eq!(book.address(&name("a.test"), Some(0)), Some(first), "it is not new");
        assert_eq!(book.name(first, &[]), Some(name("a.test")));
        for number in 0..60 {
            assert!(book.address(&name(&format!("n{number}.test")), Some(60)).is_some());
        }
        assert_eq!(book.address(&name("n60.test"), Some(60)), None);
        tokio::time::advance(MINUTE).await;
        assert!(book.address(&name("n60.test"), Some(60)).is_some());
    }

    #[test]
    fn addresses_from_before_a_restart_are_known_again_if_a_rule_writes_the_name_out() {
        let given = Book::default().address(&name("a.test"), None).unwrap();
        let mut fresh = Book::default();
        assert_eq!(fresh.name(given, &["b.test".into(), "a.test".into()]), Some(name("a.test")));
        assert_eq!(Book::default().name(given, &["b.test".into()]), None);
    }

    #[test]
    fn the_oldest_name_makes_room() {
        let mut book = Book::default();
        let addresses: Vec<_> = (0..=MOST_NAMES).map(|number| book.address(&name(&format!("n{number}.test")), None).unwrap()).collect();
        assert_eq!(book.name(addresses[0], &[]).filter(|found| *found == name("n0.test")), None);
        assert_eq!(book.name(addresses[MOST_NAMES], &[]), Some(name(&format!("n{MOST_NAMES}.test"))));
    }
}
