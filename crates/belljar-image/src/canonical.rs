//! What a layer's digest covers: the tree as a sandbox would see it, in one fixed order and form.
//!
//! Paths in byte order, and for each its kind, mode, owner, content, link target, whiteout, opacity and the extended attributes that mean
//! something inside. Not covered: times, block layout, the archive it came in. So equal content has an equal name, and a changed
//! byte in the store is found by hashing again.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use sha2::{Digest, Sha256};

use crate::archive::tree::{IMPLIED, OPAQUE, open_directory};

const VERSION: &[u8] = b"belljar layer 1\0";

/// A tree, measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Measured {
    pub(crate) digest: [u8; 32],
    /// Bytes of all files, each hard-linked one once.
    pub(crate) size: u64,
    /// Files, directories and links.
    pub(crate) files: u64,
    /// Of them directories that are only implied.
    pub(crate) implied: u64,
}

/// Measures the tree under `root`.
pub(crate) fn measure(root: BorrowedFd<'_>) -> io::Result<Measured> {
    let mut walk = Walk { hasher: Sha256::new(), size: 0, files: 0, implied: 0, linked: HashMap::new() };
    walk.hasher.update(VERSION);
    walk.directory(root, &rustix::fs::fstat(root)?, &mut Vec::new())?;
    Ok(Measured { digest: walk.hasher.finalize().into(), size: walk.size, files: walk.files, implied: walk.implied })
}

struct Walk {
    hasher: Sha256,
    size: u64,
    files: u64,
    implied: u64,
    /// Files with several names: device and inode to the first of them.
    linked: HashMap<(u64, u64), Vec<u8>>,
}

impl Walk {
    fn directory(&mut self, directory: BorrowedFd<'_>, stat: &Stat, path: &mut Vec<u8>) -> io::Result<()> {
        self.head(b'd', path, stat);
        let implied = is_implied(directory)?;
        self.implied += u64::from(implied);
        self.hasher.update([u8::from(is_opaque(directory)?) | u8::from(implied) << 1]);
        self.attributes(directory)?;
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
            self.entry(directory, name.to_bytes(), path)?;
            path.truncate(length);
        }
        Ok(())
    }

    fn entry(&mut self, parent: BorrowedFd<'_>, name: &[u8], path: &mut Vec<u8>) -> io::Result<()> {
        self.files += 1;
        let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let child = open_directory(parent, name)?;
                self.directory(child.as_fd(), &stat, path)?;
            }
            FileType::RegularFile => self.file(parent, name, &stat, path)?,
            FileType::Symlink => {
                self.head(b'l', path, &stat);
                let target = rustix::fs::readlinkat(parent, name, Vec::new())?;
                self.field(target.to_bytes());
            }
            FileType::Fifo => self.head(b'p', path, &stat),
            FileType::CharacterDevice if stat.st_rdev == 0 => {
                self.hasher.update(b"w");
                self.field(path);
            }
            _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "a layer holds a device or a socket")),
        }
        Ok(())
    }

    fn file(&mut self, parent: BorrowedFd<'_>, name: &[u8], stat: &Stat, path: &[u8]) -> io::Result<()> {
        if stat.st_nlink > 1 {
            if let Some(first) = self.linked.get(&(stat.st_dev, stat.st_ino)) {
                let first = first.clone();
                self.hasher.update(b"h");
                self.field(path);
                self.field(&first);
                return Ok(());
            }
            self.linked.insert((stat.st_dev, stat.st_ino), path.to_vec());
        }
        self.head(b'f', path, stat);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOATIME;
        let mut file = File::from(rustix::fs::openat(parent, name, flags, Mode::empty())?);
        let (size, content) = hash_content(&mut file)?;
        self.size += size;
        self.hasher.update(size.to_le_bytes());
        self.hasher.update(content);
        self.attributes(file.as_fd())
    }

    fn head(&mut self, kind: u8, path: &[u8], stat: &Stat) {
        self.hasher.update([kind]);
        self.field(path);
        for number in [stat.st_mode & 0o7777, stat.st_uid, stat.st_gid] {
            self.hasher.update(number.to_le_bytes());
        }
    }

    fn field(&mut self, bytes: &[u8]) {
        self.hasher.update((bytes.len() as u64).to_le_bytes());
        self.hasher.update(bytes);
    }

    fn attributes(&mut self, file: BorrowedFd<'_>) -> io::Result<()> {
        let attributes = meaningful_attributes(file)?;
        self.hasher.update((attributes.len() as u64).to_le_bytes());
        for (name, value) in attributes {
            self.field(&name);
            self.field(&value);
        }
        Ok(())
    }
}

fn hash_content(file: &mut File) -> io::Result<(u64, [u8; 32])> {
    let mut hasher = Sha256::new();
    let mut buffer = [0; 64 << 10];
    let mut size = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((size, hasher.finalize().into())),
            read => {
                hasher.update(&buffer[..read]);
                size += read as u64;
            }
        }
    }
}

/// Whether a directory hides everything below.
pub(crate) fn is_opaque(directory: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(attribute(directory, OPAQUE.as_bytes())?.is_some_and(|value| value == b"y"))
}

/// Whether a directory's own attributes say nothing.
pub(crate) fn is_implied(directory: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(attribute(directory, IMPLIED.as_bytes())?.is_some())
}

/// The attributes of a file that a sandbox can see and use, or that decide what it sees, in order.
pub(crate) fn meaningful_attributes(file: BorrowedFd<'_>) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut found = Vec::new();
    let mut list = vec![0; rustix::fs::flistxattr_query(file)?];
    if list.is_empty() {
        return Ok(found);
    }
    let length = rustix::fs::flistxattr(file, &mut list[..])?;
    for name in list[..length].split(|b| *b == 0) {
        // A redirect is how an overlay writes down that a directory of a layer below has another name now.
        if (name.starts_with(b"user.") || name == b"security.capability" || name == b"trusted.overlay.redirect")
            && let Some(value) = attribute(file, name)?
        {
            found.push((name.to_vec(), value));
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn attribute(file: BorrowedFd<'_>, name: &[u8]) -> io::Result<Option<Vec<u8>>> {
    // The most Linux lets an attribute hold.
    const XATTR_SIZE_MAX: usize = 64 << 10;
    let mut small = [0; 256];
    match rustix::fs::fgetxattr(file, name, &mut small[..]) {
        Ok(length) => Ok(Some(small[..length].to_vec())),
        Err(rustix::io::Errno::NODATA | rustix::io::Errno::OPNOTSUPP) => Ok(None),
        Err(rustix::io::Errno::RANGE) => {
            let mut large = vec![0; XATTR_SIZE_MAX];
            let length = rustix::fs::fgetxattr(file, name, &mut large[..])?;
            large.truncate(length);
            Ok(Some(large))
        }
        Err(error) => Err(error.into()),
    }
}
