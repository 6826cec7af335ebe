//! The control groups with a memory limit that this process is in: its own and all above, as far as they can be seen from here.
//!
//! In a container the mount shows a part of the tree only, and a process may be in a group outside that part. Then the topmost group
//! that is shown stands for the others.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A group that may limit memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LimitingGroup {
    directory: PathBuf,
    v2: bool,
}

impl LimitingGroup {
    /// Its limit in bytes, if it has one. The root of a v2 tree has no such file.
    pub(super) fn limit(&self) -> io::Result<Option<u64>> {
        let file = if self.v2 { "memory.max" } else { "memory.limit_in_bytes" };
        match self.read(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            text => match text?.trim() {
                "max" => Ok(None),
                number => Ok(Some(self.number(file, number)?)),
            },
        }
    }

    /// Bytes in use that the kernel could not take back without swapping.
    pub(super) fn in_use(&self) -> io::Result<u64> {
        let (file, reclaimable) =
            if self.v2 { ("memory.current", "inactive_file") } else { ("memory.usage_in_bytes", "total_inactive_file") };
        let used = self.number(file, self.read(file)?.trim())?;
        let counters = self.read("memory.stat")?;
        let cache = counters.lines().find_map(|line| line.strip_prefix(reclaimable)?.strip_prefix(' ')?.parse().ok());
        Ok(used.saturating_sub(cache.unwrap_or(0)))
    }

    fn read(&self, file: &str) -> io::Result<String> {
        let path = self.directory.join(file);
        fs::read_to_string(&path).map_err(|error| io::Error::new(error.kind(), format!("read {}: {error}", path.display())))
    }

    fn number(&self, file: &str, text: &str) -> io::Result<u64> {
        let odd = || format!("{} holds no number of bytes", self.directory.join(file).display());
        text.parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, odd()))
    }
}

/// The groups around a process with this `/proc/<pid>/cgroup` and `mountinfo`, innermost first. None if memory is not controlled.
pub(super) fn around(membership: &str, mounts: &str) -> Vec<LimitingGroup> {
    let mut found = Vec::new();
    for line in membership.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let v2 = controllers.is_empty();
        if !v2 && !controllers.split(',').any(|controller| controller == "memory") {
            continue;
        }
        let Some((root, mount_point)) = mounts.lines().find_map(|line| memory_mount(line, v2)) else { continue };
        let inside = Path::new(path).strip_prefix(root).ok().filter(|inside| !inside.starts_with(".."));
        let innermost = inside.map_or_else(|| mount_point.to_owned(), |inside| mount_point.join(inside));
        // A group that is gone from where it should be is not ours to see; those above it are.
        let directories = innermost.ancestors().take_while(|directory| directory.starts_with(mount_point));
        let present = directories.filter(|directory| directory.is_dir());
        found.extend(present.map(|directory| LimitingGroup { directory: directory.to_owned(), v2 }));
    }
    found
}

/// The root and mount point in a line of `mountinfo`, if it is the tree that controls memory.
fn memory_mount(line: &str, v2: bool) -> Option<(&Path, &Path)> {
    let (mount, filesystem) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(3);
    let (root, mount_point) = (mount.next()?, mount.next()?);
    let mut filesystem = filesystem.split(' ');
    let (kind, options) = (filesystem.next()?, filesystem.nth(1)?);
    let fits = if v2 { kind == "cgroup2" } else { kind == "cgroup" && options.split(',').any(|option| option == "memory") };
    fits.then(|| (Path::new(root), Path::new(mount_point)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(groups: &[(&str, &[(&str, &str)])]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (group, files) in groups {
            let path = directory.path().join(group);
            fs::create_dir_all(&path).unwrap();
            for (file, content) in *files {
                fs::write(path.join(file), content).unwrap();
            }
        }
        directory
    }

    #[test]
    fn limits_of_all_groups_around_are_seen_in_both_versions() {
        let v2 = tree(&[
            ("", &[]),
            ("system.slice", &[("memory.max", "max\n")]),
            (
                "system.slice/belljar.service",
                &[("memory.max", "4096\n"), ("memory.current", "3000\n"), ("memory.stat", "anon 5\ninactive_file 1000\nactive_file 7\n")],
            ),
        ]);
        let mounts = format!("30 1 0:26 / {} rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n", v2.path().display());
        let groups = around("0::/system.slice/belljar.service\n", &mounts);
        let limits: Vec<_> = groups.iter().map(|group| group.limit().unwrap()).collect();
        assert_eq!(limits, [Some(4096), None, None]);
        assert_eq!(groups[0].in_use().unwrap(), 2000);

        let v1 = tree(&[
            ("", &[("memory.limit_in_bytes", "9223372036854771712\n")]),
            (
                "box",
                &[
                    ("memory.limit_in_bytes", "8192\n"),
                    ("memory.usage_in_bytes", "500\n"),
                    ("memory.stat", "inactive_file 1\ntotal_inactive_file 600\n"),
                ],
            ),
        ]);
        let mounts =
            format!("31 1 0:27 / /x rw - cgroup cgroup rw,pids\n32 1 0:28 / {} rw - cgroup cgroup rw,memory\n", v1.path().display());
        let groups = around("5:pids:/elsewhere\n4:memory:/box\n0::/\n", &mounts);
        let limits: Vec<_> = groups.iter().map(|group| group.limit().unwrap()).collect();
        assert_eq!(limits, [Some(8192), Some(9_223_372_036_854_771_712)]);
        assert_eq!(groups[0].in_use().unwrap(), 0, "more cache than use is a moment's inconsistency, not a debt");
    }

    #[test]
    fn in_a_container_the_part_that_is_shown_counts() {
        let shown = tree(&[("", &[("memory.max", "1000\n")]), ("inner", &[("memory.max", "10\n")])]);
        let mounts = |root: &str| format!("30 1 0:26 {root} {} ro - cgroup2 cgroup2 rw\n", shown.path().display());
        let limits = |membership: &str, root: &str| {
            let groups = around(membership, &mounts(root));
            groups.iter().map(|group| group.limit().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(limits("0::/docker/abc/inner\n", "/docker/abc"), [Some(10), Some(1000)]);
        assert_eq!(limits("0::/docker/abc\n", "/docker/abc"), [Some(1000)]);
        assert_eq!(limits("0::/somewhere/else\n", "/docker/abc"), [Some(1000)]);
        assert_eq!(limits("0::/../other\n", "/"), [Some(1000)]);
        assert_eq!(limits("0::/gone\n", "/"), [Some(1000)]);
        assert_eq!(limits("nonsense\n", "/"), []);
    }

    #[test]
    fn a_number_that_is_none_is_an_error_that_names_the_file() {
        let odd = tree(&[("", &[("memory.max", "lots\n")])]);
        let group = LimitingGroup { directory: odd.path().to_owned(), v2: true };
        assert!(group.limit().unwrap_err().to_string().contains("memory.max holds no number"));
    }
}
