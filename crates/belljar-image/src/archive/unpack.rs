//! Turns an archive into a tree in overlay form, or refuses it.
//!
//! Later entries win over earlier ones of the same name. Times of files are kept (interpreters compare them with their caches), times of
//! directories are not. In an OCI layer, `.wh.name` becomes a whiteout and `.wh..wh..opq` an opaque directory; both speak of the layers
//! below only, whatever their order in the archive. A directory that an OCI layer only implies is marked, so that it does not take its
//! attributes from nowhere when a layer below has it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;

use super::decompress::Decompressed;
use super::member::{Attributes, Member, MemberKind, Stretch};
use super::path::EntryPath;
use super::reader::TarReader;
use super::tree::{self, Found, ParentError, Tree};
use super::{ArchiveError, ArchiveLimits, Refusal};

const WHITEOUT: &[u8] = b".wh.";
const OPAQUE_MARK: &[u8] = b".wh..wh..opq";
const LAST_ID: u64 = 65_535;
/// What a layer may say to overlayfs and to the store.
const OVERLAY: [&[u8]; 3] = [tree::OPAQUE.as_bytes(), tree::IMPLIED.as_bytes(), b"trusted.overlay.redirect"];

/// What the archive's names mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveForm {
    /// A whole root filesystem: every name is just a name.
    RootFilesystem,
    /// A layer of an OCI image: names that start with `.wh.` take things away from the layers below.
    OciLayer,
    /// A tree in overlay form, as this program packs it: whiteouts and what overlayfs wrote down about directories stand for themselves.
    Overlay,
}

/// Unpacks `reader`, whatever it is compressed with, into `tree` and reads it to its very end.
pub(crate) fn unpack(reader: impl Read, form: ArchiveForm, limits: ArchiveLimits, tree: Tree) -> Result<(), ArchiveError> {
    unpack_plain(Decompressed::new(reader, limits).map_err(ArchiveError::Read)?, form, limits, tree)
}

/// Unpacks a plain tar stream into `tree` and reads it to its very end.
pub(crate) fn unpack_plain(reader: impl Read, form: ArchiveForm, limits: ArchiveLimits, tree: Tree) -> Result<(), ArchiveError> {
    let mut archive = TarReader::new(reader);
    let tree = if form == ArchiveForm::OciLayer { tree.marking_implied() } else { tree };
    let mut unpacker = Unpacker { tree, form, limits, entries: 0, bytes: 0 };
    while let Some(member) = archive.next()? {
        unpacker.take(&member, &mut archive)?;
    }
    archive.drain()
}

struct Unpacker {
    tree: Tree,
    form: ArchiveForm,
    limits: ArchiveLimits,
    entries: u64,
    bytes: u64,
}

/// A failure before it is known which entry it belongs to.
enum Failure {
    Refused(Refusal),
    Write(io::Error),
    Read(io::Error),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Self {
        Self::Write(error.into())
    }
}

impl From<ParentError> for Failure {
    fn from(error: ParentError) -> Self {
        match error {
            ParentError::NotADirectory => Self::Refused(Refusal::ThroughLink),
            ParentError::Io(error) => Self::Write(error),
        }
    }
}

impl Unpacker {
    fn take(&mut self, member: &Member, data: &mut impl Read) -> Result<(), ArchiveError> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            return Err(ArchiveError::Archive(Refusal::Entries { limit: self.limits.entries }));
        }
        self.place(member, data).map_err(|failure| match failure {
            Failure::Refused(reason) => ArchiveError::Refused { entry: member.path.clone(), reason },
            Failure::Write(source) => ArchiveError::Unpack { entry: member.path.clone(), source },
            Failure::Read(error) => ArchiveError::from_read(error),
        })
    }

    fn place(&mut self, member: &Member, data: &mut impl Read) -> Result<(), Failure> {
        let path = EntryPath::parse(&member.path, &self.limits)?;
        let attributes = checked(&member.attributes, self.form)?;
        if path.is_root() {
            return match member.kind {
                MemberKind::Directory => Ok(apply(self.tree.root(), attributes)?),
                _ => Err(Refusal::BadName.into()),
            };
        }
        let (parent, name) = path.split();
        if self.form == ArchiveForm::OciLayer && name.starts_with(WHITEOUT) {
            return self.whiteout(parent, name);
        }
        match &member.kind {
            MemberKind::File { sparse } => self.file(parent, name, member, sparse.as_deref(), data),
            MemberKind::Directory => self.directory(parent, name, attributes),
            MemberKind::Symlink => self.symlink(parent, name, member),
            MemberKind::HardLink => self.hard_link(parent, name, &member.link),
            MemberKind::Fifo => {
                let parent = self.clear(parent, name)?;
                rustix::fs::mknodat(parent, name, FileType::Fifo, Mode::from_raw_mode(0o600), 0)?;
                Ok(apply_unopened(parent, name, attributes, true)?)
            }
            MemberKind::Whiteout if self.form == ArchiveForm::Overlay => {
                let parent = self.clear(parent, name)?;
                Ok(rustix::fs::mknodat(parent, name, FileType::CharacterDevice, Mode::empty(), 0)?)
            }
            MemberKind::Whiteout | MemberKind::Device => Err(Refusal::Device.into()),
            MemberKind::Unknown(kind) => Err(Refusal::Kind(*kind).into()),
        }
    }

    /// The parent of `name`, with nothing there any more.
    fn clear(&mut self, parent: &[u8], name: &[u8]) -> Result<BorrowedFd<'_>, Failure> {
        let found = tree::look(self.tree.parent(parent)?, name)?;
        if found == Found::Directory {
            self.tree.forget_parent();
        }
        let parent = self.tree.parent(parent)?;
        if found != Found::Nothing {
            tree::remove(parent, name)?;
        }
        Ok(parent)
    }

    fn file(
        &mut self,
        parent: &[u8],
        name: &[u8],
        member: &Member,
        sparse: Option<&[Stretch]>,
        data: &mut impl Read,
    ) -> Result<(), Failure> {
        if member.size > self.limits.file_bytes {
            return Err(Refusal::FileSize { limit: self.limits.file_bytes }.into());
        }
        self.bytes = self.bytes.saturating_add(member.size);
        if self.bytes > self.limits.total_bytes {
            return Err(Refusal::TotalSize { limit: self.limits.total_bytes }.into());
        }
        let create = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = |parent: BorrowedFd<'_>| rustix::fs::openat(parent, name, create, Mode::from_raw_mode(0o600));
        let mut file = match open(self.tree.parent(parent)?) {
            Err(Errno::EXIST) => File::from(open(self.clear(parent, name)?)?),
            opened => File::from(opened?),
        };
        match sparse {
            None => copy(data, &mut file, member.size)?,
            Some(stretches) => {
                for stretch in stretches {
                    file.seek(SeekFrom::Start(stretch.offset))?;
                    copy(data, &mut file, stretch.length)?;
                }
                file.set_len(member.size)?;
            }
        }
        Ok(apply(file.as_fd(), &member.attributes)?)
    }

    fn directory(&mut self, parent: &[u8], name: &[u8], attributes: &Attributes) -> Result<(), Failure> {
        let found = tree::look(self.tree.parent(parent)?, name)?;
        let parent = match found {
            Found::File | Found::Else => self.clear(parent, name)?,
            Found::Nothing | Found::Whiteout | Found::Directory => self.tree.parent(parent)?,
        };
        if found != Found::Directory {
            tree::make_directory(parent, name, found == Found::Whiteout)?;
        }
        let directory = tree::open_directory(parent, name)?;
        tree::clear_implied(directory.as_fd())?;
        Ok(apply(directory.as_fd(), attributes)?)
    }

    fn symlink(&mut self, parent: &[u8], name: &[u8], member: &Member) -> Result<(), Failure> {
        let target = member.link.as_slice();
        if target.is_empty() || target.len() >= 4096 || target.contains(&0) {
            return Err(Refusal::SymlinkTarget.into());
        }
        let parent = self.clear(parent, name)?;
        rustix::fs::symlinkat(target, parent, name)?;
        Ok(apply_unopened(parent, name, &member.attributes, false)?)
    }

    fn hard_link(&mut self, parent: &[u8], name: &[u8], target: &[u8]) -> Result<(), Failure> {
        let refused = || Failure::Refused(Refusal::HardLink { target: target.to_vec() });
        let target_path = EntryPath::parse(target, &self.limits).map_err(|_| refused())?;
        let (target_parent, target_name) = target_path.split();
        let from = match self.tree.enter(if target_parent.is_empty() { b"." } else { target_parent }) {
            Ok(directory) => directory,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Err(refused()),
            Err(error) => return Err(error.into()),
        };
        if tree::look(from.as_fd(), target_name)? != Found::File {
            return Err(refused());
        }
        if target_path.as_bytes() == join(parent, name) {
            return Ok(());
        }
        let parent = self.clear(parent, name)?;
        match rustix::fs::linkat(&from, target_name, parent, name, AtFlags::empty()) {
            // The target lay in a directory that this very entry replaced.
            Err(Errno::NOENT) => Err(refused()),
            linked => Ok(linked?),
        }
    }

    fn whiteout(&mut self, parent: &[u8], name: &[u8]) -> Result<(), Failure> {
        let parent = self.tree.parent(parent)?;
        if name == OPAQUE_MARK {
            return Ok(tree::set_opaque(parent)?);
        }
        let hidden = &name[WHITEOUT.len()..];
        if hidden.is_empty() || hidden == b"." || hidden == b".." || hidden.starts_with(WHITEOUT) {
            return Err(Refusal::Whiteout.into());
        }
        match tree::look(parent, hidden)? {
            Found::Nothing => Ok(rustix::fs::mknodat(parent, hidden, FileType::CharacterDevice, Mode::empty(), 0)?),
            Found::Directory => Ok(tree::set_opaque(tree::open_directory(parent, hidden)?.as_fd())?),
            Found::File | Found::Else | Found::Whiteout => Ok(()),
        }
    }
}

fn join(parent: &[u8], name: &[u8]) -> Vec<u8> {
    if parent.is_empty() { name.to_vec() } else { [parent, name].join(&b'/') }
}

fn copy(data: &mut impl Read, file: &mut File, length: u64) -> Result<(), Failure> {
    let mut buffer = [0; 32 << 10];
    let mut left = length;
    while left > 0 {
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let read = data.read(&mut buffer[..wanted]).map_err(Failure::Read)?;
        if read == 0 {
            return Err(Failure::Read(io::Error::other(Refusal::Damaged("it ends in the middle of a file"))));
        }
        file.write_all(&buffer[..read])?;
        left -= read as u64;
    }
    Ok(())
}

/// Refuses owners a sandbox does not have and attributes that would speak to the host.
fn checked(attributes: &Attributes, form: ArchiveForm) -> Result<&Attributes, Refusal> {
    for id in [attributes.uid, attributes.gid] {
        if id > LAST_ID {
            return Err(Refusal::Owner(id));
        }
    }
    let forbidden =
        |name: &[u8]| (name.starts_with(b"trusted.") && !(form == ArchiveForm::Overlay && OVERLAY.contains(&name))) || name.contains(&0);
    match attributes.xattrs.iter().find(|(name, _)| forbidden(name)) {
        Some((name, _)) => Err(Refusal::Attribute(name.clone())),
        None => Ok(attributes),
    }
}

fn ids(attributes: &Attributes) -> (Option<Uid>, Option<Gid>) {
    let id = |id: u64| u32::try_from(id).unwrap_or(0);
    (Some(Uid::from_raw(id(attributes.uid))), Some(Gid::from_raw(id(attributes.gid))))
}

fn times(attributes: &Attributes) -> Timestamps {
    let time = Timespec { tv_sec: attributes.mtime.seconds, tv_nsec: attributes.mtime.nanoseconds.into() };
    Timestamps { last_access: time, last_modification: time }
}

/// The owner goes first, because changing it clears the set-user-ID bit and the capabilities.
fn apply(file: BorrowedFd<'_>, attributes: &Attributes) -> io::Result<()> {
    let (uid, gid) = ids(attributes);
    rustix::fs::fchown(file, uid, gid)?;
    rustix::fs::fchmod(file, Mode::from_raw_mode(attributes.mode))?;
    for (name, value) in &attributes.xattrs {
        // Labels and access lists of the machine that made the archive mean nothing here.
        if name.starts_with(b"user.") || name == b"security.capability" || OVERLAY.contains(&name.as_slice()) {
            rustix::fs::fsetxattr(file, name.as_slice(), value, XattrFlags::empty())?;
        }
    }
    Ok(rustix::fs::futimens(file, &times(attributes))?)
}

/// For what cannot be opened without side effects: FIFOs and symbolic links.
fn apply_unopened(parent: BorrowedFd<'_>, name: &[u8], attributes: &Attributes, has_mode: bool) -> io::Result<()> {
    let (uid, gid) = ids(attributes);
    rustix::fs::chownat(parent, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
    if has_mode {
        rustix::fs::chmodat(parent, name, Mode::from_raw_mode(attributes.mode), AtFlags::empty())?;
    }
    Ok(rustix::fs::utimensat(parent, name, &times(attributes), AtFlags::SYMLINK_NOFOLLOW)?)
}
