//! The few files a new root needs before anything runs in it: who the agent is, and the names its resolver looks up.
//!
//! Both engines call `write_boot_files(&reservation.upper, &reservation.record, &reservation.slot)` once, on a fresh upper directory, before the first
//! process starts. It goes into the upper directory and not into a layer because it differs for every sandbox; every step goes through
//! `openat2` below `upper`, so that an upper that was not fresh after all could not lead a write elsewhere.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use belljar_guest_protocol::BootConfig;
use belljar_linux::removal;
use belljar_linux::resolve::{make_directory_beneath, open_beneath};
use belljar_types::SandboxSpec;
use rustix::fs::{Mode, OFlags, fchmod};

use crate::record::Record;
use crate::slot::Slot;

/// More than any list of names that is worth reading.
const LONGEST_NAMES: u64 = 64 << 10;

/// How long the removal of what a sandbox left in the agent's directory may take: nobody waits longer for a sandbox that goes on.
const PATIENCE: Duration = Duration::from_secs(60);

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

/// Does the same in an upper directory that a sandbox has used: nothing in it can be relied on, and what its users wrote stays.
///
/// The agent's directory is made anew, so that whatever was done to it the agent is found. Names are only brought up to date, and left
/// alone where there is no plain file any more: a sandbox that did without them can go on doing so.
pub fn renew_boot_files(upper: &Path, record: &Record, slot: &Slot) -> io::Result<()> {
    let hostname = record.spec.hostname.as_deref().unwrap_or(record.id.as_str());
    let opened = rustix::fs::open(upper, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    match removal::remove(&opened, OsStr::new(".belljar"), PATIENCE) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let agent = directory(&opened, ".belljar")?;
    file(&agent, "boot", 0o600, &boot_config(record, hostname).encode())?;
    for name in ["etc/hosts", "etc/hostname"] {
        let renew = || -> io::Result<()> {
            let old = open_beneath(&opened, Path::new(name), OFlags::RDWR | OFlags::NONBLOCK, Mode::empty())?;
            let mut old = File::from(old);
            let mut text = Vec::new();
            Read::by_ref(&mut old).take(LONGEST_NAMES).read_to_end(&mut text)?;
            if let Some(new) = renew_names(&text, hostname, slot.guest_address) {
                old.set_len(0)?;
                old.seek(io::SeekFrom::Start(0))?;
                old.write_all(&new)?;
            }
            Ok(())
        };
        if let Err(error) = renew() {
            tracing::debug!(sandbox = %record.id, name, %error, "a used root keeps its names as they are");
        }
    }
    Ok(())
}

/// The text of `/etc/hosts` or `/etc/hostname` for a sandbox that has a new address, and perhaps a new name, since; `None` if it is right as it is.
/// Only what the host wrote there itself is changed: the line with an address of a slot, and a name that is a sandbox's id.
pub fn renew_names(text: &[u8], hostname: &str, address: Ipv4Addr) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok().filter(|text| (text.len() as u64) < LONGEST_NAMES)?;
    let renewed: String = text
        .split_inclusive('\n')
        .map(|line| match line.split_ascii_whitespace().collect::<Vec<_>>()[..] {
            [old, _] if old.parse().is_ok_and(Slot::is_address) => format!("{address} {hostname}\n"),
            [old] if old.parse::<belljar_types::SandboxId>().is_ok() && text.lines().count() == 1 => format!("{hostname}\n"),
            _ => line.to_owned(),
        })
        .collect();
    (renewed != text).then(|| renewed.into_bytes())
}

/// What every process of a sandbox gets: its own over its template's.
pub(crate) fn environment(spec: &SandboxSpec) -> BTreeMap<String, String> {
    let mut env = spec.defaults.env.clone();
    env.extend(spec.env.clone());
    env
}

fn boot_config(record: &Record, hostname: &str) -> BootConfig {
    let Record { spec, token, gateway_address, .. } = record;
    BootConfig {
        sandbox: record.id.clone(),
        execution: record.execution.clone(),
        token: token.clone(),
        gateway: *gateway_address,
        env: environment(spec),
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
            agent: None,
            still: crate::Stillness::Going,
            ran_before: Duration::ZERO,
            paused: None,
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

    /// Everything that a root user inside can do to the files that the host will write to.
    #[test]
    fn a_used_root_is_taken_for_what_it_is() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("hosts"), "100.64.9.9 other\n").unwrap();
        let (record, slot) = reserved(Network::None);
        let plant = |name: &str, upper: &Path| match name {
            "a link for etc" => std::os::unix::fs::symlink(outside.path(), upper.join("etc")),
            "a link for the agent's directory" => std::os::unix::fs::symlink(outside.path(), upper.join(".belljar")),
            "a file for it" => std::fs::write(upper.join(".belljar"), "x"),
            "a boot file that is there" => std::fs::create_dir(upper.join(".belljar"))
                .and_then(|()| std::os::unix::fs::symlink(outside.path().join("hosts"), upper.join(".belljar/boot"))),
            _ => std::fs::create_dir(upper.join("etc"))
                .and_then(|()| std::os::unix::fs::symlink(outside.path().join("hosts"), upper.join("etc/hosts"))),
        };
        for name in ["a link for etc", "a link for the agent's directory", "a file for it", "a boot file that is there", "a link for hosts"]
        {
            let upper = tempfile::tempdir().unwrap();
            plant(name, upper.path()).unwrap();
            renew_boot_files(upper.path(), &record, &slot).unwrap_or_else(|error| panic!("{name}: {error}"));
            let boot = std::fs::read(upper.path().join(".belljar/boot")).unwrap();
            assert_eq!(BootConfig::decode(&boot).unwrap().sandbox, record.id, "{name}");
            assert_eq!(std::fs::read(outside.path().join("hosts")).unwrap(), b"100.64.9.9 other\n", "{name}");
            assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1, "{name}");
        }
    }

    /// On as much stack as a thread has that may block.
    #[test]
    fn a_used_root_may_be_deeper_than_the_stack() {
        const STACK: usize = 2 << 20;
        let (upper, (record, slot)) = (tempfile::tempdir().unwrap(), reserved(Network::None));
        let opened = rustix::fs::open(upper.path(), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        let mut at = directory(&opened, ".belljar").unwrap();
        for _ in 0..20_000 {
            at = directory(&at, "d").unwrap();
        }
        let path = upper.path().to_owned();
        let renewing = std::thread::Builder::new().stack_size(STACK).spawn(move || renew_boot_files(&path, &record, &slot));
        renewing.unwrap().join().unwrap().unwrap();
        let left: Vec<_> = std::fs::read_dir(upper.path().join(".belljar")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["boot"]);
    }

    #[test]
    fn only_what_the_host_wrote_is_renewed() {
        let (name, address) = ("new", Ipv4Addr::new(100, 64, 0, 6));
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(renew_names(text.as_bytes(), name, address).map(|text| String::from_utf8(text).unwrap()).as_deref(), expected);
        };
        let old = belljar_types::SandboxId::random();
        check(
            &format!("127.0.0.1 localhost\n100.64.0.2 {old}\n10.0.0.1 mine\n"),
            Some("127.0.0.1 localhost\n100.64.0.6 new\n10.0.0.1 mine\n"),
        );
        check("100.64.0.6 new\n", None);
        check(&format!("{old}\n"), Some("new\n"));
        check("my-own-name\n", None);
        check("", None);
    }
}
