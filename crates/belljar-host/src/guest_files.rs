//! The few files a new root needs before anything runs in it: who the agent is, and the names its resolver looks up.
//!
//! Both engines call `write_boot_files(&reservation.upper, &reservation.record, &reservation.slot)` once, on a fresh upper directory, before the first
//! process starts. It goes into the upper directory and not into a layer because it differs for every sandbox; every step goes through
//! `openat2` below `upper`, so that an upper that was not fresh after all could not lead a write elsewhere.

use std::fs::File;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use belljar_guest_protocol::BootConfig;
use belljar_linux::resolve::{make_directory_beneath, open_beneath};
use rustix::fs::{Mode, OFlags, fchmod};

use crate::record::Record;
use crate::slot::Slot;

/// Writes the agent's boot configuration, `/etc/hosts`, `/etc/hostname` and `/etc/resolv.conf` into a fresh upper directory.
pub fn write_boot_files(upper: &Path, record: &Record, slot: &Slot) -> io::Result<()> {
    let upper = rustix::fs::open(upper, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let hostname = record.spec.hostname.as_deref().unwrap_or(record.id.as_str());

    // Everybody may pass through: `sudo` is a link to the agent's program in this directory.
    let agent = directory(&upper, ".belljar")?;
    file(&agent, "boot", 0o600, &boot_config(record, hostname).encode())?;
    let etc = directory(&upper, "etc")?;
    file(&etc, "hosts", 0o644, hosts(hostname, slot.guest_address).as_bytes())?;
    file(&etc, "hostname", 0o644, format!("{hostname}\n").as_bytes())?;
    file(&etc, "resolv.conf", 0o644, resolver(&slot.nameservers).as_bytes())
}

fn boot_config(record: &Record, hostname: &str) -> BootConfig {
    let Record { spec, token, gateway_address, .. } = record;
    let mut env = spec.defaults.env.clone();
    env.extend(spec.env.clone());
    BootConfig {
        sandbox: record.id.clone(),
        execution: record.execution.clone(),
        token: token.clone(),
        gateway: *gateway_address,
        env,
        default_user: spec.defaults.user.clone(),
        workdir: spec.defaults.workdir.clone(),
        privilege: spec.privilege,
        hostname: Some(hostname.to_owned()),
    }
}

fn directory(parent: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    let made = make_directory_beneath(parent, Path::new(name), Mode::from_raw_mode(0o755))?;
    // Whatever the umask of this process took away.
    fchmod(&made, Mode::from_raw_mode(0o755))?;
    Ok(made)
}

fn file(directory: impl AsFd, name: &str, mode: u32, content: &[u8]) -> io::Result<()> {
    let opened = open_beneath(directory, Path::new(name), OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, Mode::from_raw_mode(mode))?;
    fchmod(&opened, Mode::from_raw_mode(mode))?;
    File::from(opened).write_all(content)
}

fn hosts(hostname: &str, address: Ipv4Addr) -> String {
    format!("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n{address} {hostname}\n")
}

fn resolver(nameservers: &[IpAddr]) -> String {
    if nameservers.is_empty() {
        // Without a server the C library asks its own host, where nobody answers, and fails at once.
        return "# this sandbox has no network\n".to_owned();
    }
    nameservers.iter().map(|server| format!("nameserver {server}\n")).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::SystemTime;

    use belljar_types::{IsolationClass, Network, SandboxSpec, Secret};

    use super::*;
    use crate::config::Places;
    use crate::record::RecordState;

    fn reserved(network: Network) -> (Record, Slot) {
        let slot = Slot::new(&Places::new(Path::new("/nowhere")), 0, network, &[Ipv4Addr::new(9, 9, 9, 9)]);
        let mut spec = SandboxSpec::on(vec!["a".repeat(64).parse().unwrap()]);
        spec.defaults.env.insert("A".into(), "template".into());
        spec.defaults.env.insert("B".into(), "template".into());
        spec.env.insert("A".into(), "caller".into());
        let record = Record {
            id: spec.id.clone(),
            execution: spec.execution.clone(),
            class: IsolationClass::Gvisor,
            spec,
            token: Secret::new([3; 32]),
            slot: slot.number,
            network,
            guest_address: slot.guest_address,
            gateway_address: slot.gateway_address,
            uid_base: slot.uid_base,
            state: RecordState::Making,
            started_at: SystemTime::now(),
            engine: serde_json::Value::Null,
        };
        (record, slot)
    }

    #[test]
    fn the_agent_reads_what_was_written_and_nobody_else_may() {
        let (upper, (record, slot)) = (tempfile::tempdir().unwrap(), reserved(Network::None));
        write_boot_files(upper.path(), &record, &slot).unwrap();
        let path = upper.path().join(".belljar/boot");
        let boot = BootConfig::decode(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!((boot.sandbox, boot.execution, boot.gateway), (record.id.clone(), record.execution, slot.gateway_address));
        assert_eq!((boot.env["A"].as_str(), boot.env["B"].as_str()), ("caller", "template"));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        assert_eq!(std::fs::metadata(upper.path().join("etc")).unwrap().permissions().mode() & 0o7777, 0o755);
        let hosts = std::fs::read_to_string(upper.path().join("etc/hosts")).unwrap();
        assert!(hosts.ends_with(&format!("{} {}\n", slot.guest_address, record.id)), "{hosts}");
    }

    #[test]
    fn only_an_open_sandbox_is_told_of_name_servers() {
        for (network, expected) in [(Network::None, "# this sandbox has no network\n"), (Network::Open, "nameserver 9.9.9.9\n")] {
            let (upper, (record, slot)) = (tempfile::tempdir().unwrap(), reserved(network));
            write_boot_files(upper.path(), &record, &slot).unwrap();
            assert_eq!(std::fs::read_to_string(upper.path().join("etc/resolv.conf")).unwrap(), expected);
        }
    }

    #[test]
    fn a_planted_link_leads_nowhere() {
        let (upper, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(outside.path(), upper.path().join("etc")).unwrap();
        let (record, slot) = reserved(Network::None);
        assert!(write_boot_files(upper.path(), &record, &slot).is_err());
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
