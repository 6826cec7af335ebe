//! Reading and writing control files relative to an open directory, so that creating a group walks no long paths.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, openat};

pub(super) fn read(directory: impl AsFd, name: &str) -> io::Result<String> {
    let mut text = String::new();
    File::from(openat(directory, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?).read_to_string(&mut text)?;
    Ok(text)
}

/// One `write` call, as the kernel expects for control files.
pub(super) fn write(directory: impl AsFd, name: &str, text: &str) -> io::Result<()> {
    let mut file = File::from(openat(directory, name, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?);
    file.write_all(text.as_bytes())
}

pub(super) fn open_directory(directory: impl AsFd, name: &str) -> io::Result<OwnedFd> {
    Ok(openat(directory, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty())?)
}

/// The names of the directories in this one.
pub(super) fn child_directories(directory: impl AsFd) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy();
        if entry.file_type() == rustix::fs::FileType::Directory && name != "." && name != ".." {
            names.push(name.into_owned());
        }
    }
    Ok(names)
}

/// The number after `key ` in a file of `key value` lines.
pub(super) fn value(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}
