//! Who answers DNS questions of open sandboxes: the nameservers the machine itself uses, as far as they can be reached from outside it.

use std::fs;
use std::net::Ipv4Addr;

/// The second is where systemd-resolved keeps the real ones when the first names only itself.
const FILES: [&str; 2] = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];

pub(super) fn nameservers() -> Vec<Ipv4Addr> {
    FILES.iter().map(|file| parse(&fs::read_to_string(file).unwrap_or_default())).find(|found| !found.is_empty()).unwrap_or_default()
}

fn parse(text: &str) -> Vec<Ipv4Addr> {
    let named = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver")?.trim().parse::<Ipv4Addr>().ok());
    named.filter(|address| !address.is_loopback() && !address.is_unspecified()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_nameservers_that_others_can_reach_count() {
        let text =
            "# nameserver 9.9.9.9\nnameserver 127.0.0.53\nnameserver 10.0.0.2\nnameserver fe80::1\nnameserver\t192.0.2.1\noptions edns0\n";
        assert_eq!(parse(text), [Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(192, 0, 2, 1)]);
    }
}
