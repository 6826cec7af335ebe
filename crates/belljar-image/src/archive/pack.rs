//! Turns a tree in overlay form into a tar stream that [`super::ArchiveForm::Overlay`] turns back into the same tree.
//!
//! Everything that means something goes along: owners, modes, times to the nanosecond, links, attributes, whiteouts (character device 0:0, as on
//! disk) and what overlayfs wrote down about directories. Sockets are left out: nothing listens on them wherever the tree comes up again.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use belljar_types::escape_untrusted;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};

use super::tree::{DEPTH_MAX, IMPLIED, OPAQUE, PATH_MAX, open_directory};
use crate::canonical::{is_implied, is_opaque, meaningful_attributes};

/// Packs the tree under `root`. The same tree gives the same bytes.
pub(crate) fn pack(root: BorrowedFd<'_>, out: impl Write) -> io::Result<()> {
    let mut packer = Packer { out: tar::Builder::new(out), linked: HashMap::new(), depth: 0 };
    packer.directory(root, &rustix::fs::fstat(root)?, &mut Vec::new())?;
    packer.out.finish()
}

struct Packer<W: Write> {
    out: tar::Builder<W>,
    /// Files with several names: device and inode to the first of them.
    linked: HashMap<(u64, u64), Vec<u8>>,
    depth: usize,
}

impl<W: Write> Packer<W> {
    fn directory(&mut self, directory: BorrowedFd<'_>, stat: &Stat, path: &mut Vec<u8>) -> io::Result<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(too_deep(path));
        }
        let mut attributes = meaningful_attributes(directory)?;
        if is_opaque(directory)? {
            attributes.push((OPAQUE.as_bytes().to_vec(), b"y".to_vec()));
        }
        if is_implied(directory)? {
            attributes.push((IMPLIED.as_bytes().to_vec(), b"y".to_vec()));
        }
        let name = if path.is_empty() { b"." } else { path.as_slice() };
        self.member(tar::EntryType::Directory, name, stat, None, &attributes, &mut io::empty(), 0)?;
        let mut names = Vec::new();
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            if entry.file_name() != c"." && entry.file_name() != c".." {
                names.push(entry.file_name().to_owned());
            }
        }
        names.sort_unstable();
        let length = path.len();
        for name in names {
            if length > 0 {
                path.push(b'/');
            }
            path.extend_from_slice(name.to_bytes());
            if path.len() >= PATH_MAX {
                return Err(too_deep(path));
            }
            self.entry(directory, name.to_bytes(), path)?;
            path.truncate(length);
        }
        self.depth -= 1;
        Ok(())
    }

    fn entry(&mut self, parent: BorrowedFd<'_>, name: &[u8], path: &mut Vec<u8>) -> io::Result<()> {
        let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let child = open_directory(parent, name)?;
                self.directory(child.as_fd(), &stat, path)
            }
            FileType::RegularFile => self.file(parent, name, &stat, path),
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(parent, name, Vec::new())?;
                self.member(tar::EntryType::Symlink, path, &stat, Some(target.to_bytes()), &[], &mut io::empty(), 0)
            }
            FileType::Fifo => self.member(tar::EntryType::Fifo, path, &stat, None, &[], &mut io::empty(), 0),
            FileType::CharacterDevice if stat.st_rdev == 0 => {
                self.member(tar::EntryType::Char, path, &stat, None, &[], &mut io::empty(), 0)
            }
            FileType::Socket => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "a tree holds a device")),
        }
    }

    fn file(&mut self, parent: BorrowedFd<'_>, name: &[u8], stat: &Stat, path: &[u8]) -> io::Result<()> {
        if stat.st_nlink > 1 {
            if let Some(first) = self.linked.get(&(stat.st_dev, stat.st_ino)) {
                let first = first.clone();
                return self.member(tar::EntryType::Link, path, stat, Some(&first), &[], &mut io::empty(), 0);
            }
            self.linked.insert((stat.st_dev, stat.st_ino), path.to_vec());
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOATIME;
        let mut file = File::from(rustix::fs::openat(parent, name, flags, Mode::empty())?);
        let attributes = meaningful_attributes(file.as_fd())?;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        self.member(tar::EntryType::Regular, path, stat, None, &attributes, &mut file, size)
    }

    #[expect(clippy::too_many_arguments, reason = "they are the parts of a tar entry")]
    fn member(
        &mut self,
        kind: tar::EntryType,
        path: &[u8],
        stat: &Stat,
        link: Option<&[u8]>,
        attributes: &[(Vec<u8>, Vec<u8>)],
        data: &mut dyn Read,
        size: u64,
    ) -> io::Result<()> {
        // Everything that does not fit a plain header in some case goes into the extended one in every case: one way to write, one to read.
        let mut records = vec![
            (b"path".to_vec(), path.to_vec()),
            (b"mtime".to_vec(), format!("{}.{:09}", stat.st_mtime, stat.st_mtime_nsec).into_bytes()),
            (b"size".to_vec(), size.to_string().into_bytes()),
        ];
        records.extend(link.map(|link| (b"linkpath".to_vec(), link.to_vec())));
        records.extend(attributes.iter().map(|(name, value)| ([b"SCHILY.xattr.".as_slice(), name].concat(), value.clone())));
        let extended: Vec<u8> = records.iter().flat_map(|(name, value)| record(name, value)).collect();
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(tar::EntryType::XHeader);
        header.set_size(extended.len() as u64);
        header.set_cksum();
        self.out.append(&header, extended.as_slice())?;
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(kind);
        header.set_mode(stat.st_mode & 0o7777);
        header.set_uid(stat.st_uid.into());
        header.set_gid(stat.st_gid.into());
        header.set_size(size);
        if kind == tar::EntryType::Char {
            header.set_device_major(0)?;
            header.set_device_minor(0)?;
        }
        header.set_cksum();
        let mut counted = data.take(size);
        self.out.append(&header, &mut counted)?;
        if counted.limit() > 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a file became shorter while it was packed"));
        }
        Ok(())
    }
}

/// A sandbox may have made the tree, to be a burden. The end of such a path says enough; all of it may be 4 KiB.
fn too_deep(path: &[u8]) -> io::Error {
    const SHOWN: usize = 200;
    let (_, end) = path.split_at(path.len().saturating_sub(SHOWN));
    let end = escape_untrusted(end);
    let limits = format!("more than {DEPTH_MAX} directories deep or has a path of {PATH_MAX} bytes");
    io::Error::new(io::ErrorKind::InvalidData, format!("the tree is {limits}; that path ends in \"{end}\""))
}

/// A pax record says its own length, digits included.
fn record(name: &[u8], value: &[u8]) -> Vec<u8> {
    let rest = name.len() + value.len() + 3;
    let mut length = rest + rest.to_string().len();
    if rest + length.to_string().len() != length {
        length = rest + length.to_string().len();
    }
    [format!("{length} ").as_bytes(), name, b"=", value, b"\n"].concat()
}
