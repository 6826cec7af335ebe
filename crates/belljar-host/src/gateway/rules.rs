//! The firewall rules, as one text each that is loaded as one transaction: all of it holds or none.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::process::{Command, Output, Stdio};

use belljar_linux::netns::Netns;
use belljar_types::RESERVED_NETWORKS;

use crate::error::HostError;
use crate::gateway::{NAME_PORT, PROXY_PORT};
use crate::slot::{CLOSED, FILTERED, OPEN};
use crate::tool::Tool;

const NFT: Tool = Tool { program: "nft", purpose: "load the firewall rules", package: "nftables" };

/// The gateway's end of the cable to the host.
pub(super) const UPLINK: &str = "up0";

/// What holds in the gateway.
pub(super) fn gateway(nameservers: &[Ipv4Addr], filtering: bool) -> String {
    let dns = dns_exception(nameservers);
    let capture = if filtering { capture() } else { String::new() };
    let reserved = reserved();
    format!(
        r#"
table inet belljar {{}}
delete table inet belljar
table inet belljar {{
  chain spoofed {{
    type filter hook prerouting priority raw; policy accept;
    meta nfproto ipv6 drop
    iifname {{ "{CLOSED}*", "{OPEN}*", "{FILTERED}*" }} fib saddr . iif oif missing drop
  }}
  {capture}
  chain input {{
    type filter hook input priority filter; policy drop;
    iifname {{ "{CLOSED}*", "{OPEN}*", "{FILTERED}*" }} ct state established accept
    iifname "{FILTERED}*" ct status dnat tcp dport {{ {NAME_PORT}, {PROXY_PORT} }} accept
    iifname "{FILTERED}*" ct status dnat udp dport {NAME_PORT} accept
  }}
  chain forward {{
    type filter hook forward priority filter; policy drop;
    iifname "{OPEN}*" oifname "{UPLINK}" goto outbound
    iifname "{UPLINK}" oifname "{OPEN}*" ct state established,related accept
    iifname "{OPEN}*" reject with icmpx admin-prohibited
  }}
  chain outbound {{
    {dns}
    ip daddr {{ {reserved} }} reject with icmpx admin-prohibited
    accept
  }}
  chain postrouting {{
    type nat hook postrouting priority srcnat; policy accept;
    oifname "{UPLINK}" masquerade
  }}
}}
"#
    )
}

/// Never reachable from an open sandbox: the same networks that no rule of a policy opens.
fn reserved() -> String {
    RESERVED_NETWORKS.map(|(network, prefix, _)| format!("{network}/{prefix}")).join(", ")
}

/// Whatever a filtered sandbox sends ends at the name service or the proxy. A part of its own: not every kernel can redirect, and whoever lets nobody
/// out through the proxy needs none that can. Without it nothing comes out of a filtered sandbox.
fn capture() -> String {
    format!(
        r#"chain capture {{
    type nat hook prerouting priority dstnat; policy accept;
    iifname "{FILTERED}*" meta l4proto {{ tcp, udp }} th dport 53 redirect to :{NAME_PORT}
    iifname "{FILTERED}*" meta l4proto tcp redirect to :{PROXY_PORT}
  }}"#
    )
}

/// What holds on the machine itself for what comes out of the gateway.
pub(super) fn machine(table: &str, interface: &str, network: &str, nameservers: &[Ipv4Addr]) -> String {
    let dns = dns_exception(nameservers);
    format!(
        r#"
table ip {table} {{}}
delete table ip {table}
table ip {table} {{
  chain input {{
    type filter hook input priority filter - 5; policy accept;
    iifname "{interface}" jump from_sandboxes
  }}
  chain from_sandboxes {{
    {dns}
    drop
  }}
  chain forward {{
    type filter hook forward priority filter - 5; policy accept;
    iifname "{interface}" ip saddr != {network} drop
    iifname "{interface}" accept
    oifname "{interface}" ct state established,related accept
    oifname "{interface}" drop
  }}
  chain postrouting {{
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr {network} oifname != "{interface}" masquerade
  }}
}}
"#
    )
}

/// Removes a table of the machine; does nothing if there is none.
pub(super) fn nothing(table: &str) -> String {
    format!("table ip {table} {{}}\ndelete table ip {table}\n")
}

fn dns_exception(nameservers: &[Ipv4Addr]) -> String {
    let mut rule = String::new();
    for nameserver in nameservers {
        // Formatting into a string cannot fail.
        let _ = writeln!(rule, "ip daddr {nameserver} meta l4proto {{ tcp, udp }} th dport 53 accept");
    }
    rule
}

/// Loads rules into a namespace, or into the one of this process.
pub(super) fn load(netns: Option<&Netns>, rules: &str) -> Result<(), HostError> {
    NFT.judge(match netns {
        Some(netns) => netns.run(|| nft(rules)),
        None => nft(rules),
    })
}

fn nft(rules: &str) -> io::Result<Output> {
    let mut child = Command::new("nft").args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let written = child.stdin.take().map_or(Ok(()), |mut input| input.write_all(rules.as_bytes()));
    let output = child.wait_with_output()?;
    // One that ends before it has read all has something to say.
    if output.status.success() {
        written?;
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_sandbox_is_refused_every_reserved_network() {
        let rules = gateway(&[], false);
        let refusing = rules.lines().find(|line| line.contains("ip daddr {") && line.contains("reject")).unwrap();
        let (_, listed) = refusing.split_once('{').unwrap();
        let refused: Vec<&str> = listed.split_once('}').unwrap().0.split(',').map(str::trim).collect();
        for (network, prefix, what) in RESERVED_NETWORKS {
            assert!(refused.contains(&format!("{network}/{prefix}").as_str()), "{network}/{prefix} ({what}) is not in {refused:?}");
        }
        assert_eq!(refused.len(), RESERVED_NETWORKS.len());
        assert!(refused.contains(&"168.63.129.16/32") && refused.contains(&"169.254.0.0/16") && refused.contains(&"192.88.99.0/24"));
    }
}
