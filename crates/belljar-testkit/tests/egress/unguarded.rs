//! The control of everything that the firewall stops: the same gateway without its rules, with forwarding and a cable to the internet. What does not get
//! through with the rules has to get through here, or it proves nothing. When this ends, everything is as it was.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::scene::Scene;

pub(crate) struct Unguarded {
    gateway: PathBuf,
    rules: String,
    settings: Vec<(String, String)>,
}

/// The namespace of the internet's servers.
pub(crate) fn outside(scene: &Scene) -> PathBuf {
    scene.internet.uplink.with_file_name("outside")
}

/// Runs a program in a network namespace; what it said.
pub(crate) fn within(netns: &Path, words: &[&str]) -> String {
    let output = Command::new("nsenter").arg(format!("--net={}", netns.display())).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The number after a word of the kernel's own counts, `Icmp: InEchos` or `Icmp6InEchos`, in a namespace.
pub(crate) fn counted(netns: &Path, group: &str, name: &str) -> u64 {
    if group.is_empty() {
        let text = within(netns, &["cat", "/proc/self/net/snmp6"]);
        return text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or_else(|| panic!("{name}: {text}"));
    }
    let text = within(netns, &["cat", "/proc/self/net/snmp"]);
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(": "));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let at = names.split(' ').position(|known| known == name).unwrap();
    values.split(' ').nth(at).unwrap().parse().unwrap()
}

impl Unguarded {
    /// Takes the rules away.
    pub(crate) async fn begin(scene: &Scene) -> Self {
        let gateway = scene.lab.host.gateway().netns_path().to_owned();
        let record = scene.lab.host.record(scene.id()).await.unwrap().unwrap();
        let rules = within(&gateway, &["nft", "list", "ruleset"]);
        assert!(rules.contains("table inet belljar"), "{rules}");
        let mut unguarded = Self { gateway: gateway.clone(), rules, settings: Vec::new() };
        within(&gateway, &["nft", "flush", "ruleset"]);
        let cable = format!("bjf{}", record.slot);
        for (name, value) in [
            ("net/ipv4/ip_forward".to_owned(), "1"),
            ("net/ipv4/conf/all/rp_filter".to_owned(), "0"),
            (format!("net/ipv4/conf/{cable}/rp_filter"), "0"),
            ("net/ipv6/conf/all/disable_ipv6".to_owned(), "0"),
            (format!("net/ipv6/conf/{cable}/disable_ipv6"), "0"),
        ] {
            let before = within(&gateway, &["cat", &format!("/proc/sys/{name}")]).trim().to_owned();
            unguarded.set(&name, value);
            unguarded.settings.push((name, before));
        }
        let outside = outside(scene);
        let mut holder = Command::new("nsenter").arg(format!("--net={}", outside.display())).args(["sleep", "60"]).spawn().unwrap();
        while std::fs::read_link(format!("/proc/{}/ns/net", holder.id())).ok() == std::fs::read_link("/proc/self/ns/net").ok() {
            std::thread::yield_now();
        }
        let ip = |netns: &Path, words: &str| within(netns, &std::iter::once("ip").chain(words.split(' ')).collect::<Vec<_>>());
        ip(&gateway, &format!("link add bare type veth peer name bare netns {}", holder.id()));
        holder.kill().unwrap();
        holder.wait().unwrap();
        for (netns, address) in [(&gateway, "203.0.114.1/30"), (&outside, "203.0.114.2/30")] {
            ip(netns, &format!("addr add {address} dev bare"));
            ip(netns, "link set bare up");
        }
        ip(&gateway, "route add 203.0.113.0/24 via 203.0.114.2");
        ip(&outside, "route add 100.64.0.0/10 via 203.0.114.1");
        unguarded
    }

    fn set(&self, name: &str, value: &str) {
        within(&self.gateway, &["sh", "-c", &format!("echo {value} > /proc/sys/{name}")]);
    }
}

impl Drop for Unguarded {
    fn drop(&mut self) {
        within(&self.gateway, &["ip", "link", "del", "bare"]);
        for (name, value) in &self.settings {
            self.set(name, value);
        }
        let mut nft = Command::new("nsenter");
        nft.arg(format!("--net={}", self.gateway.display())).args(["nft", "-f", "-"]).stdin(Stdio::piped());
        let mut nft = nft.spawn().unwrap();
        nft.stdin.take().unwrap().write_all(self.rules.as_bytes()).unwrap();
        assert!(nft.wait().unwrap().success(), "the rules are there again");
    }
}
