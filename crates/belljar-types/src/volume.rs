//! Volumes: storage that outlives sandboxes, and how it is shown in them.
//!
//! ```text
//!   making ──► ready ──► removing ──► (forgotten)
//!      └───────────────────▲   one that could not be made: nobody saw it
//! ```
//! A volume that is mounted read-write is mounted once. Whoever wants several writers says so (`shared`), and is the one to keep them apart.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::{FileKind, Invalid, ProjectId, Timestamp, VolumeId, VolumeName};

/// Where a volume is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VolumeState {
    /// Being made: nobody sees it.
    Making,
    /// All of it is there.
    Ready,
    /// Being removed: nobody sees it any more.
    Removing,
}

impl VolumeState {
    /// The word used in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Making => "making",
            Self::Ready => "ready",
            Self::Removing => "removing",
        }
    }
}

impl fmt::Display for VolumeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A volume, as stored.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Volume {
    /// Its name for life.
    pub id: VolumeId,
    /// Whose it is.
    pub project: ProjectId,
    /// What people call it; no two of a project are called the same.
    pub name: VolumeName,
    /// Where it is in its life.
    pub state: VolumeState,
    /// What may be written to it, in bytes. What a clone shares with its origin is not counted again.
    pub size_bytes: u64,
    /// Whether it never changes again: a state of its origin that was kept.
    pub read_only: bool,
    /// The volume it is a copy of, which may be gone.
    pub origin: Option<VolumeId>,
    /// The bucket that it is, by the operator's name for that; it holds nothing of its own then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// When it was asked for.
    pub created_at: Timestamp,
}

impl Volume {
    /// The least that can hold anything: the filesystem's own records count too.
    pub const LEAST_BYTES: u64 = 1 << 20;
}

/// How a sandbox may use a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MountMode {
    /// It may write, and is the only sandbox that has the volume.
    #[default]
    ReadWrite,
    /// It may read, beside others that do not have the volume for themselves.
    ReadOnly,
    /// It may write, beside others that said the same.
    Shared,
}

impl MountMode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ReadWrite, Self::ReadOnly, Self::Shared];

    /// The word used in requests, answers and the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadWrite => "read-write",
            Self::ReadOnly => "read-only",
            Self::Shared => "shared",
        }
    }

    /// Whether two sandboxes may have a volume in these modes at the same time.
    pub fn goes_with(self, other: Self) -> bool {
        self != Self::ReadWrite && other != Self::ReadWrite
    }
}

impl fmt::Display for MountMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for MountMode {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let found = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        found.ok_or_else(|| Invalid::new("mode", "read-write, read-only or shared", text))
    }
}

/// A volume in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct VolumeMount {
    /// Which.
    pub volume: VolumeId,
    /// What it was called when it was mounted.
    pub name: VolumeName,
    /// Where it is seen.
    pub path: MountPath,
    /// How it may be used.
    pub mode: MountMode,
}

/// A directory of a sandbox that a volume is shown at: absolute, without detours, and nothing that the sandbox itself is made of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MountPath(String);

/// What engines mount themselves: nothing can be put on or into these.
const TAKEN: [&str; 5] = ["/proc", "/sys", "/dev", "/run", "/.belljar"];
/// What a sandbox does not start without; directories below can be covered.
const NEEDED: [&str; 7] = ["/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/tmp"];
const LONGEST: usize = 1024;

impl MountPath {
    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether one of the two is the other or lies in it.
    pub fn touches(&self, other: &Self) -> bool {
        Path::new(&self.0).starts_with(&other.0) || Path::new(&other.0).starts_with(&self.0)
    }

    /// The same path seen from the root directory.
    pub fn beneath_root(&self) -> &Path {
        Path::new(self.0.trim_start_matches('/'))
    }
}

impl FromStr for MountPath {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let refused = |expected: &str| Invalid::new("volumes.path", expected, text);
        let trimmed = text.strip_suffix('/').unwrap_or(text);
        let Some(below) = trimmed.strip_prefix('/') else { return Err(refused("an absolute path of a directory other than /")) };
        if trimmed.len() > LONGEST || text.contains(char::is_control) {
            return Err(refused("at most 1024 bytes without control characters"));
        }
        if below.split('/').any(|part| matches!(part, "" | "." | "..") || part.len() > 255) {
            return Err(refused("a path without empty parts, '.' and '..'"));
        }
        if TAKEN.iter().any(|taken| Path::new(trimmed).starts_with(taken)) {
            return Err(refused("a path outside /proc, /sys, /dev, /run and /.belljar"));
        }
        if NEEDED.contains(&trimmed) {
            return Err(refused("a directory that the sandbox can start without, or one inside it"));
        }
        Ok(Self(trimmed.to_owned()))
    }
}

impl TryFrom<String> for MountPath {
    type Error = Invalid;
    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl From<MountPath> for String {
    fn from(path: MountPath) -> String {
        path.0
    }
}

impl fmt::Display for MountPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A path in a volume, seen from its root: no part of it is `..`, and it may be empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct VolumePath(PathBuf);

impl VolumePath {
    /// The parts, joined; empty for the volume's own root.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// Whether it is the root of the volume.
    pub fn is_root(&self) -> bool {
        self.0.as_os_str().is_empty()
    }
}

impl FromStr for VolumePath {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text.contains('\0') || text.len() >= 4096 {
            return Err(Invalid::new("path", "fewer than 4096 bytes, none of them NUL", text));
        }
        let parts = text.split('/').filter(|part| !matches!(*part, "" | "."));
        if parts.clone().any(|part| part == "..") {
            return Err(Invalid::new("path", "a path in the volume, without '..'", text));
        }
        Ok(Self(parts.collect()))
    }
}

impl fmt::Display for VolumePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}", crate::escape_untrusted(self.0.as_os_str().as_encoded_bytes()))
    }
}

/// What is known of something in a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeEntry {
    /// Where it is, from the volume's root; the bytes are whatever somebody in a sandbox chose.
    pub path: Vec<u8>,
    /// What it is (of the link itself, not of what it points to).
    pub kind: FileKind,
    /// Size in bytes.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Owner's number, as sandboxes see it.
    pub uid: u32,
    /// Group's number.
    pub gid: u32,
    /// Last use of the content, nanoseconds since 1970.
    pub accessed_nanos: i64,
    /// Last change of the content.
    pub modified_nanos: i64,
    /// Last change of anything.
    pub changed_nanos: i64,
    /// Where a symbolic link points.
    pub symlink_target: Option<Vec<u8>>,
}

/// Owner and permissions to give; what is unset stays, or is the default for something new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EntryChange {
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Permission bits.
    pub mode: Option<u32>,
}

impl EntryChange {
    /// Refuses what no sandbox could have: ids beyond its range, and bits that are no permissions.
    pub fn validate(&self) -> Result<(), Invalid> {
        for (field, id) in [("uid", self.uid), ("gid", self.gid)] {
            if let Some(id) = id.filter(|id| *id > 65_535) {
                return Err(Invalid::new(field, "0 to 65535, the ids that sandboxes have", id.to_string()));
            }
        }
        match self.mode {
            Some(mode) if mode > 0o7777 => Err(Invalid::new("mode", "permission bits, at most 7777 in octal", format!("{mode:o}"))),
            _ => Ok(()),
        }
    }
}

/// How to write a file of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VolumeWrite {
    /// Its owner and permissions: the default user's and 0644 when unset.
    pub change: EntryChange,
    /// Replace a file that is there; otherwise that is refused.
    pub overwrite: bool,
    /// Make missing directories.
    pub make_parents: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_covers_nothing_that_a_sandbox_is_made_of() {
        for good in ["/data", "/data/", "/home/user/work", "/mnt/a b", "/etc/app", "/tmp/x", "/running"] {
            assert!(good.parse::<MountPath>().is_ok(), "{good}");
        }
        for bad in
            ["", "/", "data", "/proc", "/proc/1", "/sys/x", "/dev/shm", "/run/x", "/.belljar", "/etc", "/tmp", "/a/../b", "/a//b", "/a\nb"]
        {
            assert!(bad.parse::<MountPath>().is_err(), "{bad:?}");
        }
        let at = |path: &str| path.parse::<MountPath>().unwrap();
        assert!(at("/data").touches(&at("/data/x")) && at("/data/x").touches(&at("/data")));
        assert!(!at("/data").touches(&at("/data2")));
        assert_eq!(at("/data/x").beneath_root(), Path::new("data/x"));
    }

    #[test]
    fn a_path_in_a_volume_stays_in_it() {
        for (text, path) in [("/", ""), ("", ""), ("/a/./b//c/", "a/b/c"), ("a", "a")] {
            assert_eq!(text.parse::<VolumePath>().unwrap().as_path(), Path::new(path), "{text}");
        }
        for bad in ["..", "/a/../../etc", "a\0b"] {
            assert!(bad.parse::<VolumePath>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_writer_without_company_goes_with_nobody() {
        use MountMode::{ReadOnly, ReadWrite, Shared};
        for mode in MountMode::ALL {
            assert!(!ReadWrite.goes_with(mode) && !mode.goes_with(ReadWrite));
            assert_eq!(mode.as_str().parse::<MountMode>().unwrap(), mode);
        }
        assert!(ReadOnly.goes_with(ReadOnly) && Shared.goes_with(Shared) && Shared.goes_with(ReadOnly));
    }

    #[test]
    fn a_name_may_begin_with_anything_it_may_hold() {
        for good in ["a", "_a", "-a", "A-1_b", &"x".repeat(63)] {
            assert!(good.parse::<VolumeName>().is_ok(), "{good}");
        }
        for bad in ["", "a b", "a/b", "a.b", "a:b", &"x".repeat(64)] {
            assert!(bad.parse::<VolumeName>().is_err(), "{bad}");
        }
    }
}
