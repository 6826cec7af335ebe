//! What `stat` tells, with names for numbers.

use std::collections::HashMap;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use belljar_guest_protocol::Failure;
use belljar_types::{FileInfo, FileKind, GuestPath};

use super::{as_os, refused};
use crate::users::Users;

/// Names that were looked up before.
#[derive(Debug, Default)]
pub(crate) struct Names {
    users: HashMap<u32, Option<String>>,
    groups: HashMap<u32, Option<String>>,
}

/// Describes files; looks each owner up once.
pub(crate) struct Describer<'a> {
    users: &'a Users,
    pub(super) names: Names,
}

impl<'a> Describer<'a> {
    pub(crate) fn new(users: &'a Users) -> Self {
        Self { users, names: Names::default() }
    }

    pub(super) fn with_names(users: &'a Users, names: Names) -> Self {
        Self { users, names }
    }

    /// What is at a path; a link at its end is described, not followed.
    pub(crate) fn at(&mut self, path: &[u8]) -> Result<FileInfo, Failure> {
        let metadata = std::fs::symlink_metadata(as_os(path)).map_err(|error| refused(path, &error))?;
        self.describe(path, &metadata)
    }

    /// What this metadata says.
    pub(crate) fn describe(&mut self, path: &[u8], metadata: &std::fs::Metadata) -> Result<FileInfo, Failure> {
        let file_type = metadata.file_type();
        let kind = if file_type.is_file() {
            FileKind::File
        } else if file_type.is_dir() {
            FileKind::Directory
        } else if file_type.is_symlink() {
            FileKind::Symlink
        } else {
            FileKind::Other
        };
        let target = |path: &[u8]| std::fs::read_link(Path::new(as_os(path))).ok().map(|target| target.into_os_string().into_vec());
        let (uid, gid, users) = (metadata.uid(), metadata.gid(), self.users);
        Ok(FileInfo {
            path: GuestPath::new(path)?,
            kind,
            size: metadata.size(),
            mode: metadata.mode() & 0o7777,
            uid,
            gid,
            owner: self.names.users.entry(uid).or_insert_with(|| users.user_name(uid)).clone(),
            group: self.names.groups.entry(gid).or_insert_with(|| users.group_name(gid)).clone(),
            modified_nanos: metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec()),
            symlink_target: if kind == FileKind::Symlink { target(path) } else { None },
            attributes: None,
        })
    }
}
