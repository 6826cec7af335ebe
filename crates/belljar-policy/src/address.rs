//! Addresses: networks as rules write them, and those that no rule can open.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use belljar_types::RESERVED_NETWORKS;
use serde::{Deserialize, Serialize};

/// A network: an address and how many of its leading bits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cidr {
    address: IpAddr,
    prefix: u8,
}

impl Cidr {
    /// How many leading bits count.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Its first address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Whether the address is in it. A version-4 address in version-6 clothes is what it hides.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = plain_address(address);
        self.address.is_ipv4() == address.is_ipv4() && masked(address, self.prefix) == self.address
    }

    /// Whether all of `other` is in it.
    pub fn covers(&self, other: &Self) -> bool {
        other.prefix >= self.prefix && self.contains(other.address)
    }
}

/// The address with all bits after the first `prefix` cleared.
pub(crate) fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0))),
        IpAddr::V6(v6) => {
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & u128::MAX.checked_shl(128 - u32::from(prefix.min(128))).unwrap_or(0)))
        }
    }
}

impl FromStr for Cidr {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected a network such as 203.0.113.0/24, got {:?}", belljar_types::escape_untrusted(text.as_bytes()));
        let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        if plain_address(address) != address {
            return Err(format!("expected the version-4 network itself, got {text:?}"));
        }
        let most = if address.is_ipv4() { 32 } else { 128 };
        let prefix: u8 = prefix.map_or(Ok(most), str::parse).map_err(|_| wrong())?;
        if prefix > most {
            return Err(wrong());
        }
        if masked(address, prefix) != address {
            return Err(format!(
                "expected a network without bits beyond its prefix, as in {}/{prefix}, got {text:?}",
                masked(address, prefix)
            ));
        }
        Ok(Self { address, prefix })
    }
}

impl TryFrom<String> for Cidr {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Cidr> for String {
    fn from(cidr: Cidr) -> String {
        cidr.to_string()
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// The address that is really meant: a version-4 address that was mapped, translated (NAT64) or wrapped (6to4) into version 6 is that one.
pub fn plain_address(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let bits = v6.to_bits();
    let low = || IpAddr::V4(Ipv4Addr::from_bits((bits & 0xffff_ffff) as u32));
    match v6.segments() {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => low(),
        [0x2002, ..] => IpAddr::V4(Ipv4Addr::from_bits(((bits >> 80) & 0xffff_ffff) as u32)),
        // The old compatible form; the unspecified address and loopback are not of it.
        [0, 0, 0, 0, 0, 0, high, _] if high != 0 => low(),
        _ => address,
    }
}

/// What an address is, if it is one that only the operator can open.
pub fn reserved(address: IpAddr) -> Option<&'static str> {
    match plain_address(address) {
        IpAddr::V4(v4) => {
            let hit = |(network, prefix, _): &&(Ipv4Addr, u8, &str)| masked(v4.into(), *prefix) == IpAddr::V4(*network);
            RESERVED_NETWORKS.iter().find(hit).map(|(_, _, what)| *what)
        }
        IpAddr::V6(v6) => match v6.segments() {
            [0, 0, 0, 0, 0, 0, 0, 0] => Some("unspecified"),
            [0, 0, 0, 0, 0, 0, 0, 1] => Some("loopback"),
            [0x100, 0, 0, 0, ..] => Some("discarded"),
            [0x64, 0xff9b, ..] => Some("translated"),
            [0x2001, 0, ..] => Some("tunnelled (Teredo)"),
            [first, ..] if first & 0xfe00 == 0xfc00 => Some("private"),
            [first, ..] if first & 0xffc0 == 0xfe80 => Some("link-local"),
            [first, ..] if first & 0xffc0 == 0xfec0 => Some("site-local"),
            [first, ..] if first & 0xff00 == 0xff00 => Some("multicast"),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_reserved_in_every_clothing() {
        let check = |text: &str, closed: bool| assert_eq!(reserved(text.parse().unwrap()).is_some(), closed, "{text}");
        for text in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.2",
            "127.1.2.3",
            "168.63.129.16",
            "169.254.169.254",
            "172.31.0.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
        ] {
            check(text, true);
            check(&format!("::ffff:{text}"), true);
            check(&format!("64:ff9b::{text}"), true);
            let [a, b, c, d] = text.parse::<Ipv4Addr>().unwrap().octets();
            check(&format!("2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1"), true);
        }
        for text in ["::", "::1", "fc00::1", "fd00:ec2::254", "fe80::1", "ff02::1", "2001::1", "::10.0.0.1"] {
            check(text, true);
        }
        for text in ["203.0.113.9", "1.1.1.1", "172.32.0.1", "100.128.0.1", "168.63.129.17", "2606:4700::1", "::ffff:203.0.113.9"] {
            check(text, false);
        }
    }

    #[test]
    fn a_network_has_no_bits_beyond_its_prefix_and_holds_what_it_says() {
        for text in ["203.0.113.1/24", "1.2.3.4/33", "::ffff:1.2.3.4/128", "x", "1.2.3.4/", "1.2.3/24", "1.2.3.4/-1"] {
            assert!(text.parse::<Cidr>().is_err(), "{text}");
        }
        let net: Cidr = "203.0.113.0/24".parse().unwrap();
        assert!(net.contains("203.0.113.255".parse().unwrap()) && net.contains("::ffff:203.0.113.1".parse().unwrap()));
        assert!(!net.contains("203.0.114.0".parse().unwrap()) && !net.contains("2001:db8::1".parse().unwrap()));
        let all: Cidr = "0.0.0.0/0".parse().unwrap();
        assert!(all.covers(&net) && !net.covers(&all) && all.contains("255.1.1.1".parse().unwrap()));
    }
}
