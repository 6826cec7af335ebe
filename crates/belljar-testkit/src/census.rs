//! Counts what one host has on the machine: processes, mounts, network namespaces, interfaces, cgroups, files. Two counts that differ are a leak.
//!
//! Everything of a host carries its instance's tag, so that others at work on the same machine are not counted along.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What is there, by kind.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Census(BTreeMap<String, usize>);

/// Whose things are counted.
#[derive(Debug, Clone)]
pub struct Scope {
    /// The tag in the names of everything that belongs to the host.
    pub instance: String,
    /// Where it keeps everything.
    pub data_dir: PathBuf,
}

impl Census {
    /// Counts now.
    pub fn take(scope: &Scope) -> Self {
        let tag = format!("belljar-{}", scope.instance);
        let data_dir = scope.data_dir.to_string_lossy().into_owned();
        let run = PathBuf::from("/run").join(&tag).join("netns");
        let counts = [
            ("processes", processes(&tag)),
            ("mounts", mounts(&[&tag, &data_dir])),
            ("network namespaces", entries(&run)),
            ("interfaces", interfaces(&run.join("gateway"))),
            ("cgroups", cgroups(Path::new("/sys/fs/cgroup"), &tag)),
            ("sandbox disks", entries(&scope.data_dir.join("pool/sandboxes"))),
            ("sandbox homes", entries(&scope.data_dir.join("sandboxes"))),
            ("snapshots", entries(&scope.data_dir.join("snapshots")) + entries(&scope.data_dir.join("pool/snapshots"))),
            ("captures of paused sandboxes", entries(&scope.data_dir.join("pool/paused"))),
            ("half-made layers", entries(&scope.data_dir.join("pool/staging"))),
            ("quota groups", quota_groups(&scope.data_dir.join("pool"))),
            ("open files of this process", entries(Path::new("/proc/self/fd"))),
        ];
        Self(counts.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect())
    }

    /// Counts until nothing is more than in `before`, or half a minute is over; then says what is more.
    pub async fn settle(before: &Self, scope: &Scope, tolerated: &[(&str, usize)]) -> Result<(), String> {
        // Cgroups, disks and namespaces are torn down by kernel workers after their last user has gone.
        for _ in 0..300 {
            if Self::take(scope).more_than(before, tolerated).is_empty() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let leaks = Self::take(scope).more_than(before, tolerated);
        if leaks.is_empty() { Ok(()) } else { Err(leaks.join(", ")) }
    }

    /// What is more here than in `before`, beyond what is tolerated of each kind.
    pub fn more_than(&self, before: &Self, tolerated: &[(&str, usize)]) -> Vec<String> {
        self.0
            .iter()
            .filter_map(|(kind, &now)| {
                let then = before.0.get(kind).copied().unwrap_or(0);
                let allowed = tolerated.iter().find(|(name, _)| name == kind).map_or(0, |(_, allowed)| *allowed);
                (now > then + allowed).then(|| format!("{kind}: {then} before, {now} now"))
            })
            .collect()
    }
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        f.write_str(&parts.join(", "))
    }
}

fn entries(directory: &Path) -> usize {
    fs::read_dir(directory).map_or(0, Iterator::count)
}

/// Living processes in the host's cgroups, and children of this process, dead ones included: those are ours to bury.
fn processes(tag: &str) -> usize {
    let Ok(processes) = fs::read_dir("/proc") else { return 0 };
    let me = format!("PPid:\t{}\n", std::process::id());
    let counts = |directory: PathBuf| {
        let status = fs::read_to_string(directory.join("status")).unwrap_or_default();
        let ours = status.contains(&me);
        let zombie = status.contains("State:\tZ");
        ours || (!zombie && fs::read_to_string(directory.join("cgroup")).is_ok_and(|text| text.contains(tag)))
    };
    processes.filter_map(Result::ok).filter(|entry| counts(entry.path())).count()
}

/// Mounts that any process sees and that belong to the host: the sandboxes' own die with them or are a leak.
fn mounts(marks: &[&str]) -> usize {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    text.lines().filter(|line| marks.iter().any(|mark| line.contains(mark))).count()
}

/// Interfaces in the gateway's network namespace: the host ends of all slots.
fn interfaces(gateway: &Path) -> usize {
    let listed = Command::new("nsenter").arg(format!("--net={}", gateway.display())).args(["ip", "-o", "link"]).output();
    listed.map_or(0, |output| String::from_utf8_lossy(&output.stdout).lines().count())
}

fn cgroups(directory: &Path, tag: &str) -> usize {
    let Ok(list) = fs::read_dir(directory) else { return 0 };
    let directories = list.filter_map(Result::ok).filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories.map(|entry| usize::from(entry.path().to_string_lossy().contains(tag)) + cgroups(&entry.path(), tag)).sum()
}

fn quota_groups(pool: &Path) -> usize {
    let listed = Command::new("btrfs").args(["qgroup", "show"]).arg(pool).output();
    listed.map_or(0, |output| String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.starts_with("0/")).count())
}
