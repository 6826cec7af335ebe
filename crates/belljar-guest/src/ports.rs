//! Ports that programs inside listen on, from the kernel's own tables.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use belljar_guest_protocol::AGENT_PORT;
use belljar_types::ListeningPort;

/// Tables and descriptors that are looked at; a program inside can open very many.
const MOST_LINES: usize = 65_536;
const LISTENING: &str = "0A";

/// All ports that are listened on, the agent's own left out.
pub(crate) fn listening() -> Vec<ListeningPort> {
    let mut sockets = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let text = std::fs::read_to_string(table).unwrap_or_default();
        sockets.extend(text.lines().skip(1).take(MOST_LINES).filter_map(parse_line));
    }
    let owners = owners(&sockets.iter().map(|(_, _, inode)| *inode).collect());
    let me = std::process::id();
    let ports: BTreeSet<ListeningPort> = sockets
        .into_iter()
        .map(|(address, port, inode)| ListeningPort { address, port, pid: owners.get(&inode).copied() })
        .filter(|found| found.pid != Some(me) && !(found.pid.is_none() && found.port == AGENT_PORT))
        .collect();
    ports.into_iter().collect()
}

fn parse_line(line: &str) -> Option<(IpAddr, u16, u64)> {
    let mut fields = line.split_ascii_whitespace();
    let (address, port) = fields.nth(1)?.split_once(':')?;
    let state = fields.nth(1)?;
    let inode = fields.nth(5)?.parse().ok()?;
    (state == LISTENING).then_some((parse_address(address)?, u16::from_str_radix(port, 16).ok()?, inode))
}

/// Words of 4 bytes, each in the machine's own order.
fn parse_address(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(hex.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    match hex.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let mut bytes = [0u8; 16];
            for (target, at) in bytes.chunks_exact_mut(4).zip([0, 8, 16, 24]) {
                target.copy_from_slice(&word(at)?);
            }
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

/// Which process holds which of these sockets.
fn owners(wanted: &BTreeSet<u64>) -> HashMap<u64, u32> {
    let mut owners = HashMap::new();
    let Ok(processes) = std::fs::read_dir("/proc") else { return owners };
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    for pid in pids {
        if owners.len() == wanted.len() {
            break;
        }
        let Ok(descriptors) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
        for descriptor in descriptors.flatten().take(MOST_LINES) {
            let target = std::fs::read_link(descriptor.path()).ok();
            let inode = target.and_then(|target| target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok());
            if let Some(inode) = inode.filter(|inode| wanted.contains(inode)) {
                owners.entry(inode).or_insert(pid);
            }
        }
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lines_are_understood() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 54321 1 0000 100 0 0 10 0";
        assert_eq!(parse_line(line), Some(([127, 0, 0, 1].into(), 8080, 54321)));
        let six = "   0: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 7 1";
        assert_eq!(parse_line(six), Some((Ipv6Addr::LOCALHOST.into(), 80, 7)));
        assert_eq!(parse_line("rubbish"), None);
        assert_eq!(parse_line(&line.replace(" 0A ", " 01 ")), None, "a connection is no listener");
    }
}
