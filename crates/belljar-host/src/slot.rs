//! Network slots: ready-made network namespaces with an address, kept in stock because making one costs more than all the rest of a sandbox.
//!
//! ```text
//!             make                take               release
//!   (number) ─────▶ free ────────────────▶ taken ─────────────▶ used ──clean──▶ free
//!                    │                  by a record              │
//!                    └──────────────── destroy ◀─────────────────┘  (stock is full, or it could not be cleaned)
//! ```
//! A slot that is taken is named in a sandbox's record. After a crash, those without a record are cleaned or destroyed, whatever state they were in.

mod maker;
mod stock;

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use belljar_types::Network;

use crate::config::Places;

pub(crate) use maker::Maker;
pub(crate) use stock::Stock;

/// Above this, user ids would run out of 32 bits.
pub(crate) const MOST_SLOTS: u32 = 65_000;
const FIRST_UID: u32 = 1_000_000;
const UIDS: u32 = 65_536;
const ADDRESSES: u32 = u32::from_be_bytes([100, 64, 0, 0]);
const PREFIX: u8 = 30;

/// A network namespace for one sandbox, with the user ids that go with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Its number on this host.
    pub number: u32,
    /// What it lets through.
    pub network: Network,
    /// The file that stands for its namespace, for `setns`.
    pub netns: PathBuf,
    /// The interface inside.
    pub interface: &'static str,
    /// The sandbox's own address.
    pub guest_address: Ipv4Addr,
    /// The other end: the only neighbour, and the only one who talks to the agent.
    pub gateway_address: Ipv4Addr,
    /// Length of the network's prefix for both.
    pub prefix: u8,
    /// First host user id for the sandbox's users.
    pub uid_base: u32,
    /// How many user ids it has.
    pub uid_count: u32,
    /// Who answers DNS questions; empty in a closed slot.
    pub nameservers: Vec<IpAddr>,
}

impl Slot {
    pub(crate) fn new(places: &Places, number: u32, network: Network, nameservers: &[Ipv4Addr]) -> Self {
        let first = ADDRESSES + number * 4;
        let gateway_address = Ipv4Addr::from(first + 1);
        let nameservers = match network {
            Network::None => Vec::new(),
            Network::Open => nameservers.to_vec(),
            // Whoever it asks, its question ends at the gateway.
            Network::Filtered => vec![gateway_address],
        };
        Self {
            number,
            network,
            netns: places.netns.join(number.to_string()),
            interface: "eth0",
            gateway_address,
            guest_address: Ipv4Addr::from(first + 2),
            prefix: PREFIX,
            uid_base: FIRST_UID + number * UIDS,
            uid_count: UIDS,
            nameservers: nameservers.into_iter().map(IpAddr::V4).collect(),
        }
    }

    /// Whether this is an address that slots have.
    pub(crate) fn is_address(address: Ipv4Addr) -> bool {
        (ADDRESSES..ADDRESSES + MOST_SLOTS * 4).contains(&u32::from(address))
    }

    /// The host's end of the cable. The firewall knows what kind of slot it is by this name alone.
    pub(crate) fn host_interface(&self) -> String {
        let kind = match self.network {
            Network::None => CLOSED,
            Network::Open => OPEN,
            Network::Filtered => FILTERED,
        };
        format!("{kind}{}", self.number)
    }
}

/// How the host's ends of closed slots are called.
pub(crate) const CLOSED: &str = "bjc";
/// How those of open slots are called.
pub(crate) const OPEN: &str = "bjo";
/// How those of filtered slots are called.
pub(crate) const FILTERED: &str = "bjf";
/// Every kind of slot, with what its host's end is called.
pub(crate) const KINDS: [(&str, Network); 3] = [(CLOSED, Network::None), (OPEN, Network::Open), (FILTERED, Network::Filtered)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_share_neither_addresses_nor_users() {
        let places = Places::new(std::path::Path::new("/data"));
        let slot = |number| Slot::new(&places, number, Network::None, &[]);
        assert_eq!(slot(0).gateway_address, Ipv4Addr::new(100, 64, 0, 1));
        assert_eq!(slot(1).guest_address, Ipv4Addr::new(100, 64, 0, 6));
        assert_eq!(slot(1).gateway_address, belljar_guest_protocol::gateway_of(slot(1).guest_address), "a restored agent relies on it");
        assert_eq!(slot(1).uid_base, slot(0).uid_base + slot(0).uid_count);
        assert!(slot(MOST_SLOTS - 1).uid_base.checked_add(UIDS).is_some());
        assert!(slot(MOST_SLOTS - 1).host_interface().len() <= 15);
    }
}
