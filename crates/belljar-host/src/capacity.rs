//! [`HostRoom`]: what is left of the machine for another sandbox.
//!
//! Memory is what the kernel says, or what a control group around the server leaves, whichever is less: a service or container with a
//! limit dies at its limit, however much the machine has. Disk is what is left in the pool or on the disk below it, whichever is less:
//! the pool's image is sparse and may promise more than its disk has.

mod groups;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use belljar_ports::{Capacity, Room};

use self::groups::LimitingGroup;
use crate::config::Places;

/// Reads how much room this host has. Holds nothing open, so that the pool can be unmounted.
#[derive(Debug)]
pub struct HostRoom {
    pool: PathBuf,
    image: PathBuf,
    groups: Vec<LimitingGroup>,
}

impl HostRoom {
    /// The room for sandboxes of the host in this data directory. Finds out which control groups this process is in.
    pub fn new(data_dir: &Path) -> io::Result<Self> {
        let Places { pool, image, .. } = Places::new(data_dir);
        let groups = groups::around(&fs::read_to_string("/proc/self/cgroup")?, &fs::read_to_string("/proc/self/mountinfo")?);
        Ok(Self { pool, image, groups })
    }
}

impl Capacity for HostRoom {
    fn room(&self) -> io::Result<Room> {
        let machine = memory(&fs::read_to_string("/proc/meminfo")?)?;
        let (total, available) = within(machine, &self.groups)?;
        let disk = free_bytes(&self.pool)?.min(free_bytes(&self.image)?);
        Ok(Room { memory_total_bytes: total, memory_available_bytes: available, disk_available_bytes: disk })
    }
}

/// All and available memory in the text of `/proc/meminfo`.
fn memory(text: &str) -> io::Result<(u64, u64)> {
    let field = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kibibytes = value.and_then(|value| value.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kibibytes
            .and_then(|number| number.checked_mul(1024))
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("/proc/meminfo has no {name}")))
    };
    Ok((field("MemTotal")?, field("MemAvailable")?))
}

/// All and available memory of a process in these groups. The tightest limit and the fullest group need not be the same one.
fn within((machine_total, machine_available): (u64, u64), groups: &[LimitingGroup]) -> io::Result<(u64, u64)> {
    let (mut total, mut available) = (machine_total, machine_available);
    for group in groups {
        // Limits above all there is are how v1 writes "none".
        if let Some(limit) = group.limit()?.filter(|limit| *limit < machine_total) {
            total = total.min(limit);
            available = available.min(limit.saturating_sub(group.in_use()?));
        }
    }
    Ok((total, available))
}

/// What the filesystem with this file has left for others than its reserve.
fn free_bytes(path: &Path) -> io::Result<u64> {
    let space = rustix::fs::statvfs(path)
        .map_err(|errno| io::Error::new(io::Error::from(errno).kind(), format!("look at the space of {}: {errno}", path.display())))?;
    Ok(space.f_bavail.saturating_mul(space.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_the_kernels_words() {
        let text = "MemTotal:        8048604 kB\nMemFree:          100 kB\nMemAvailable:    4000000 kB\nHugePages_Total:       0\n";
        assert_eq!(memory(text).unwrap(), (8_048_604 * 1024, 4_000_000 * 1024));
        for bad in ["", "MemTotal: 1 kB\n", "MemTotal: x kB\nMemAvailable: 1 kB\n", "MemTotal: 99999999999999999 kB\nMemAvailable: 1 kB\n"]
        {
            assert_eq!(memory(bad).unwrap_err().kind(), io::ErrorKind::InvalidData, "{bad}");
        }
    }

    #[test]
    fn the_fullest_group_counts_even_if_its_limit_is_not_the_tightest() {
        let directory = tempfile::tempdir().unwrap();
        for (group, limit, used) in [("", "1000", "990"), ("inner", "500", "10")] {
            let path = directory.path().join(group);
            fs::create_dir_all(&path).unwrap();
            for (file, content) in [("memory.max", limit), ("memory.current", used), ("memory.stat", "inactive_file 0\n")] {
                fs::write(path.join(file), content).unwrap();
            }
        }
        let mounts = format!("30 1 0:26 / {} rw - cgroup2 cgroup2 rw\n", directory.path().display());
        let groups = groups::around("0::/inner\n", &mounts);
        assert_eq!(within((5000, 4000), &groups).unwrap(), (500, 10));
        assert_eq!(within((5000, 4), &groups).unwrap(), (500, 4));
        assert_eq!(within((400, 300), &groups).unwrap(), (400, 300));
    }

    #[test]
    fn a_missing_pool_is_named() {
        let error = free_bytes(Path::new("/nonexistent/pool")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("/nonexistent/pool"), "{error}");
    }
}
