//! `config.json`: what runsc is told about a sandbox, in the OCI runtime's words.
//!
//! Root inside has the capabilities that an ordinary container's root has (package managers need them), and they reach no
//! further than the sentry. Raw sockets are not among them, and neither are `SYS_ADMIN` and `SYS_RESOURCE`, with which the sentry's
//! limit on processes would not bind.

use std::io;
use std::path::{Path, PathBuf};

use belljar_host::ShownVolume;
use belljar_types::SandboxSpec;
use serde_json::{Value, json};

const CAPABILITIES: [&str; 13] = [
    "CAP_AUDIT_WRITE",
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_MKNOD",
    "CAP_NET_BIND_SERVICE",
    "CAP_SETFCAP",
    "CAP_SETGID",
    "CAP_SETPCAP",
    "CAP_SETUID",
    "CAP_SYS_CHROOT",
];
const SEARCH_PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const AGENT: &str = "/.belljar/guest";
const OPEN_FILES: u32 = 1024;
const MOST_OPEN_FILES: u32 = 1 << 20;

/// Host tasks that runsc itself needs: its threads, the gofer, and the stubs of what runs as other users than the one that forks most.
const ENGINE_TASKS: u32 = 256;
/// The host's processes for each of the sandbox's: a stub and its helper.
const TASKS_PER_PROCESS: u32 = 2;

/// The group's limit on host tasks for a sandbox that may have this many processes. The sentry counts the sandbox's processes itself and refuses
/// the next one; only who gets around that (by a user namespace, which lifts the sentry's limit) meets this one.
pub(crate) fn host_tasks(pids: u32) -> u32 {
    pids.saturating_mul(TASKS_PER_PROCESS).saturating_add(ENGINE_TASKS)
}

/// Writes `config.json` for a sandbox with its root at `root` and its network in `netns`. `volumes`: where in the private mount namespace they are,
/// with the restrictions that hold for them there already.
pub(crate) fn write(path: &Path, spec: &SandboxSpec, root: &Path, netns: &Path, volumes: &[(PathBuf, ShownVolume)]) -> io::Result<()> {
    let hostname = spec.hostname.as_deref().unwrap_or(spec.id.as_str());
    // The sentry counts per user, refuses one later than Linux does, and does not count the agent for an ordinary user.
    let pids = spec.limits.pids.saturating_sub(2);
    let mut config = config(root, &[AGENT]);
    config["hostname"] = json!(hostname);
    config["process"]["rlimits"] = json!([
        { "type": "RLIMIT_NPROC", "soft": pids, "hard": pids },
        { "type": "RLIMIT_NOFILE", "soft": OPEN_FILES, "hard": MOST_OPEN_FILES },
    ]);
    config["linux"]["namespaces"] = namespaces(&json!({ "type": "network", "path": netns }));
    if let Some(mounts) = config["mounts"].as_array_mut() {
        mounts.extend(volumes.iter().map(|(source, volume)| {
            let access = if volume.read_only { "ro" } else { "rw" };
            let mut options = vec!["bind", access, "nosuid", "nodev"];
            if volume.is_bucket {
                // Whatever gVisor remembers of a file it keeps open on the host, long after the program has closed it.
                options.push("dcache=0");
            }
            json!({ "destination": volume.at.as_str(), "type": "bind", "source": source, "options": options })
        }));
    }
    std::fs::write(path, config.to_string())
}

/// Writes `config.json` for a sandbox that runs one program on a read-only root in an empty network namespace.
pub(crate) fn write_trial(path: &Path, root: &Path, program: &[&str]) -> io::Result<()> {
    let mut config = config(root, program);
    config["root"]["readonly"] = json!(true);
    config["linux"]["namespaces"] = namespaces(&json!({ "type": "network" }));
    std::fs::write(path, config.to_string())
}

fn config(root: &Path, program: &[&str]) -> Value {
    json!({
        "ociVersion": "1.0.2",
        "root": { "path": root, "readonly": false },
        "process": {
            "args": program,
            "cwd": "/",
            "env": [SEARCH_PATH],
            "user": { "uid": 0, "gid": 0 },
            "capabilities": { "bounding": CAPABILITIES, "effective": CAPABILITIES, "permitted": CAPABILITIES },
            "noNewPrivileges": true,
        },
        // Each of these lives in the sentry; all the rest is the overlay, where the disk limit counts it. Without the last entry, which runsc
        // takes note of and skips, it would cover an empty /tmp with a filesystem in memory.
        "mounts": [
            { "destination": "/proc", "type": "proc", "source": "proc" },
            { "destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["mode=0755"] },
            { "destination": "/dev/shm", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=1777"] },
            { "destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro", "nosuid", "noexec", "nodev"] },
            { "destination": "/tmp", "type": "belljar-nothing", "source": "nothing" },
        ],
        "linux": {},
    })
}

fn namespaces(network: &Value) -> Value {
    json!([{ "type": "pid" }, { "type": "ipc" }, { "type": "uts" }, { "type": "mount" }, network])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_inside_cannot_lift_its_own_limits() {
        for forbidden in ["CAP_SYS_ADMIN", "CAP_SYS_RESOURCE", "CAP_NET_RAW", "CAP_NET_ADMIN"] {
            assert!(!CAPABILITIES.contains(&forbidden), "{forbidden}");
        }
    }

    #[test]
    fn the_limits_of_the_spec_reach_the_sentry() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.json");
        let mut spec = SandboxSpec::on(vec!["a".repeat(64).parse().unwrap()]);
        spec.limits.pids = 77;
        write(&path, &spec, Path::new("/root \"quoted\""), Path::new("/run/ns"), &[]).unwrap();
        let config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(config["process"]["rlimits"][0], json!({ "type": "RLIMIT_NPROC", "soft": 75, "hard": 75 }));
        assert_eq!(config["root"]["path"], "/root \"quoted\"");
        assert_eq!(config["hostname"], spec.id.as_str());
        assert_eq!(config["linux"]["namespaces"][4]["path"], "/run/ns");
    }

    #[test]
    fn the_backstop_leaves_room_for_the_engine() {
        assert_eq!(host_tasks(16), 288);
        assert_eq!(host_tasks(u32::MAX), u32::MAX);
    }
}
