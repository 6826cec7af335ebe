//! Networks of version 4 that are nobody's on the internet, or that a cloud keeps for itself.
//!
//! One list for all who bar the way out: the firewall of open sandboxes, the proxy of filtered ones, webhooks. A network that one of them forgot
//! would be a way into whatever the host stands in.

use std::net::Ipv4Addr;

/// Each network's first address, how many of its bits count, and what it is. None is in another.
pub const RESERVED_NETWORKS: [(Ipv4Addr, u8, &str); 13] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, "this network"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "private"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "shared, where sandboxes are"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "loopback"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local, with cloud metadata"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "private"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "protocol assignments"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "private"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "6to4 relays"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "benchmarks, and names in sandboxes"),
    // Azure's, for metadata and its agents: the one public address among them.
    (Ipv4Addr::new(168, 63, 129, 16), 32, "cloud metadata"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
    // With the broadcast address.
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved"),
];
