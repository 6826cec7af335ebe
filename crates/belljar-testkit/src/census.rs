//! Counts what is on the machine: processes, mounts, network namespaces, interfaces, cgroups, files. Two counts that differ are a leak.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// What is there, by kind.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Census(BTreeMap<String, usize>);

impl Census {
    /// Counts now. `data_dir` is the laboratory's own.
    pub fn take(data_dir: &Path) -> Self {
        let mut counts = BTreeMap::new();
        counts.insert("engine processes", engine_processes());
        counts.insert("mounts", lines(Path::new("/proc/self/mountinfo")));
        counts.insert("network namespaces", network_namespaces());
        counts.insert("interfaces", entries(Path::new("/sys/class/net")));
        counts.insert("cgroups", cgroups());
        counts.insert("sandbox disks", entries(&data_dir.join("pool/sandboxes")));
        counts.insert("sandbox homes", entries(&data_dir.join("sandboxes")));
        counts.insert("staging", entries(&data_dir.join("pool/staging")));
        counts.insert("open files of this process", entries(Path::new("/proc/self/fd")));
        Self(counts.into_iter().map(|(kind, count): (&str, usize)| (kind.to_owned(), count)).collect())
    }

    /// Counts until nothing is more than in `before`, or the time is over; then says what is more.
    pub async fn settle(before: &Self, data_dir: &Path, tolerated: &[(&str, usize)]) -> Result<(), String> {
        // Network namespaces and cgroups are torn down by kernel workers after the last user has gone.
        for _ in 0..300 {
            if Self::take(data_dir).more_than(before, tolerated).is_empty() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let leaks = Self::take(data_dir).more_than(before, tolerated);
        if leaks.is_empty() { Ok(()) } else { Err(leaks.join(", ")) }
    }

    /// What is more here than in `before`, with what is tolerated of each kind.
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

fn lines(file: &Path) -> usize {
    fs::read_to_string(file).map_or(0, |text| text.lines().count())
}

/// Processes whose name says that an engine or an agent made them. Others come and go on a machine that builds.
fn engine_processes() -> usize {
    let Ok(processes) = fs::read_dir("/proc") else { return 0 };
    processes
        .filter_map(Result::ok)
        .filter_map(|entry| fs::read_to_string(entry.path().join("comm")).ok())
        .filter(|name| ["runsc", "exe", "guest", "belljar"].iter().any(|prefix| name.starts_with(prefix)))
        .count()
}

fn network_namespaces() -> usize {
    let Ok(processes) = fs::read_dir("/proc") else { return 0 };
    let mut seen = std::collections::BTreeSet::new();
    for entry in processes.filter_map(Result::ok) {
        if let Ok(link) = fs::read_link(entry.path().join("ns/net")) {
            seen.insert(link);
        }
    }
    let kept = fs::read_to_string("/proc/self/mountinfo").map_or(0, |text| text.lines().filter(|line| line.contains(" nsfs ")).count());
    seen.len() + kept
}

fn cgroups() -> usize {
    fn below(directory: &Path) -> usize {
        let Ok(list) = fs::read_dir(directory) else { return 0 };
        list.filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| 1 + below(&entry.path()))
            .sum()
    }
    below(Path::new("/sys/fs/cgroup"))
}
