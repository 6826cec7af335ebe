//! What a stack of layers looks like from inside, without mounting it.
//!
//! Follows overlayfs: an upper layer's entry hides a lower one's, directories merge unless opaque, whiteouts end the search. Symbolic
//! links are followed inside the stack only, by hand, so that a hostile image can point nowhere else.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};

use crate::archive::tree::{Tree, beneath, open_directory};
use crate::canonical::{is_implied, is_opaque};

const LINKS_MAX: usize = 40;

/// A stack of layers.
pub(crate) struct MergedView {
    /// Uppermost first.
    roots: Vec<OwnedFd>,
}

/// Where a path leads once all links are followed.
#[derive(Debug)]
pub(crate) struct Place {
    /// The path without links, relative to the root.
    pub(crate) path: Vec<u8>,
    pub(crate) kind: PlaceKind,
}

/// What is there.
#[derive(Debug)]
pub(crate) enum PlaceKind {
    Nothing,
    Directory(Stat),
    File(File),
    Else,
}

enum Step {
    Nothing,
    Directory(Vec<OwnedFd>),
    Link(Vec<u8>),
    File(File),
    Else,
}

impl MergedView {
    /// The stack of these trees, lowest first.
    pub(crate) fn new(lowest_first: Vec<Tree>) -> Self {
        Self { roots: lowest_first.into_iter().rev().map(Tree::into_root).collect() }
    }

    /// Follows `path` from the root of the stack.
    pub(crate) fn resolve(&self, path: &[u8]) -> io::Result<Place> {
        let mut todo: Vec<Vec<u8>> = reversed_parts(path);
        let mut levels: Vec<(Vec<u8>, Vec<OwnedFd>)> = Vec::new();
        let mut links = 0;
        while let Some(part) = todo.pop() {
            if part == b".." {
                levels.pop();
                continue;
            }
            let here = levels.last().map_or(&self.roots, |(_, fds)| fds);
            match step(here, &part)? {
                Step::Directory(fds) => levels.push((part, fds)),
                Step::Link(target) => {
                    links += 1;
                    if links > LINKS_MAX {
                        return Err(io::Error::new(io::ErrorKind::InvalidData, "too many symbolic links"));
                    }
                    if target.starts_with(b"/") {
                        levels.clear();
                    }
                    todo.extend(reversed_parts(&target));
                }
                found => {
                    let mut parts: Vec<Vec<u8>> = levels.into_iter().map(|(name, _)| name).collect();
                    parts.push(part);
                    let is_last = todo.is_empty();
                    if todo.iter().any(|part| part == b"..") {
                        return Err(io::Error::new(io::ErrorKind::InvalidData, "a symbolic link climbs through a missing directory"));
                    }
                    parts.extend(todo.into_iter().rev());
                    let kind = match found {
                        Step::File(file) if is_last => PlaceKind::File(file),
                        Step::Nothing => PlaceKind::Nothing,
                        _ => PlaceKind::Else,
                    };
                    return Ok(Place { path: parts.join(&b'/'), kind });
                }
            }
        }
        let top = levels.last().map_or(&self.roots, |(_, fds)| fds).first();
        let stat = top.map(rustix::fs::fstat).ok_or(io::ErrorKind::NotFound)??;
        let path = levels.iter().map(|(name, _)| name.as_slice()).collect::<Vec<_>>().join(&b'/');
        Ok(Place { path, kind: PlaceKind::Directory(stat) })
    }

    /// What a directory is like if the uppermost layers that hold it only imply it: as the first layer below says that describes it.
    /// `None` if the uppermost layer describes it itself, or none does.
    pub(crate) fn described_below(&self, path: &[u8]) -> io::Result<Option<Stat>> {
        let mut is_implied_above = false;
        for root in &self.roots {
            let mut here = rustix::io::fcntl_dupfd_cloexec(root, 0)?;
            let (mut hides_below, mut is_there) = (false, true);
            for part in path.split(|b| *b == b'/') {
                match rustix::fs::openat2(&here, part, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty(), beneath()) {
                    Ok(directory) => here = directory,
                    Err(error) => {
                        is_there = false;
                        // A whiteout, a file or a link in the way hides what is below.
                        hides_below |= error != rustix::io::Errno::NOENT;
                        break;
                    }
                }
                hides_below |= is_opaque(here.as_fd())?;
            }
            if is_there && !is_implied(here.as_fd())? {
                return if is_implied_above { Ok(Some(rustix::fs::fstat(&here)?)) } else { Ok(None) };
            }
            is_implied_above |= is_there;
            if hides_below {
                break;
            }
        }
        Ok(None)
    }

    /// The content of a file, if there is one; one larger than `limit` is an error.
    pub(crate) fn read(&self, path: &[u8], limit: u64) -> io::Result<Option<Vec<u8>>> {
        let PlaceKind::File(file) = self.resolve(path)?.kind else { return Ok(None) };
        let mut content = Vec::new();
        file.take(limit + 1).read_to_end(&mut content)?;
        if content.len() as u64 > limit { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(Some(content)) }
    }
}

fn reversed_parts(path: &[u8]) -> Vec<Vec<u8>> {
    path.split(|b| *b == b'/').filter(|part| !part.is_empty() && *part != b".").rev().map(<[u8]>::to_vec).collect()
}

fn step(here: &[OwnedFd], name: &[u8]) -> io::Result<Step> {
    let mut merged = Vec::new();
    for layer in here {
        let stat = match rustix::fs::statat(layer, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(rustix::io::Errno::NOENT) => continue,
            Err(error) => return Err(error.into()),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let directory = open_directory(layer.as_fd(), name)?;
                let opaque = is_opaque(directory.as_fd())?;
                merged.push(directory);
                if opaque {
                    break;
                }
            }
            _ if !merged.is_empty() => break,
            FileType::CharacterDevice if stat.st_rdev == 0 => break,
            FileType::Symlink => return Ok(Step::Link(rustix::fs::readlinkat(layer, name, Vec::new())?.into_bytes())),
            FileType::RegularFile => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                return Ok(Step::File(rustix::fs::openat2(layer, name, flags, Mode::empty(), beneath())?.into()));
            }
            _ => return Ok(Step::Else),
        }
    }
    Ok(if merged.is_empty() { Step::Nothing } else { Step::Directory(merged) })
}
