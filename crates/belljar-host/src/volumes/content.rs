//! Files of a volume, read and written in pieces: memory stays the same whatever their size, and no thread waits for a slow client.
//!
//! A file is opened without waiting and without following, and used only if it is a plain one: a pipe that somebody left there would hold a reader
//! for ever. What is written has no name until all of it is there.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use belljar_linux::resolve::open_beneath;
use belljar_ports::ContentStream;
use belljar_types::{ByteRange, EntryChange, FileKind, VolumeEntry, VolumePath, VolumeWrite};
use bytes::Bytes;
use futures_core::Stream;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use tokio::task::JoinHandle;

use super::tree::{entry, entry_in, give, kind, make_parents, parent_of};

const PIECE: usize = 256 << 10;
const FILE_MODE: u32 = 0o644;

/// Opens a plain file for reading.
pub(super) fn open(root: &OwnedFd, path: &VolumePath) -> io::Result<(File, VolumeEntry)> {
    if path.is_root() {
        return Err(Errno::ISDIR.into());
    }
    let opened = open_beneath(root, path.as_path(), OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY, Mode::empty())?;
    let found = rustix::fs::fstat(&opened)?;
    match kind(&found) {
        FileKind::File => Ok((File::from(opened), entry(&found, path.as_path(), None))),
        FileKind::Directory => Err(Errno::ISDIR.into()),
        FileKind::Symlink | FileKind::Other => Err(Errno::NXIO.into()),
    }
}

/// A piece of a file's content, as it is asked for.
pub(super) fn stream(file: File, range: ByteRange) -> ContentStream {
    Box::pin(Reading { file: Some(file), at: range.offset, left: range.length.unwrap_or(u64::MAX), under_way: None })
}

struct Reading {
    file: Option<File>,
    at: u64,
    left: u64,
    under_way: Option<JoinHandle<(File, io::Result<Bytes>)>>,
}

impl Stream for Reading {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.under_way.is_none() {
            let Some(file) = this.file.take().filter(|_| this.left > 0) else { return Poll::Ready(None) };
            let (at, length) = (this.at, usize::try_from(this.left).unwrap_or(PIECE).min(PIECE));
            this.under_way = Some(tokio::task::spawn_blocking(move || {
                let mut piece = vec![0; length];
                let read = file.read_at(&mut piece, at).map(|count| {
                    piece.truncate(count);
                    Bytes::from(piece)
                });
                (file, read)
            }));
        }
        let Some(reading) = &mut this.under_way else { return Poll::Ready(None) };
        let done = ready!(Pin::new(reading).poll(context));
        this.under_way = None;
        Poll::Ready(match done {
            Ok((_, Ok(piece))) if piece.is_empty() => None,
            Ok((file, Ok(piece))) => {
                this.file = Some(file);
                let count = u64::try_from(piece.len()).unwrap_or(u64::MAX);
                this.at += count;
                this.left -= count;
                Some(Ok(piece))
            }
            Ok((_, Err(error))) => Some(Err(error)),
            Err(stopped) => Some(Err(io::Error::other(stopped))),
        })
    }
}

/// A file that has no name yet.
pub(super) struct Draft {
    parent: OwnedFd,
    file: File,
}

/// Why a draft was not filled.
pub(super) enum Unfilled {
    /// Whoever sends the content stopped.
    Sender(io::Error),
    /// It could not be written.
    Disk(io::Error),
}

/// Makes a file without a name in the directory that it will be in.
pub(super) fn begin(root: &OwnedFd, path: &VolumePath, options: VolumeWrite) -> io::Result<Draft> {
    if path.is_root() {
        return Err(Errno::ISDIR.into());
    }
    if options.make_parents {
        make_parents(root, path)?;
    }
    let (parent, name) = parent_of(root, path)?;
    // Said before anything is sent; what appears meanwhile is found at the end.
    look_at_target(&parent, name, options)?;
    let file = rustix::fs::openat(&parent, ".", OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)?;
    Ok(Draft { parent, file: File::from(file) })
}

/// The file that is to be replaced, if there is one. Only a plain one is.
fn look_at_target(parent: &OwnedFd, name: &std::ffi::OsStr, options: VolumeWrite) -> io::Result<Option<VolumeEntry>> {
    let found = match entry_in(parent, name, Path::new(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    match found.kind {
        FileKind::Directory => Err(Errno::ISDIR.into()),
        FileKind::Symlink => Err(Errno::LOOP.into()),
        FileKind::Other => Err(Errno::NXIO.into()),
        FileKind::File if !options.overwrite => Err(Errno::EXIST.into()),
        FileKind::File => Ok(Some(found)),
    }
}

impl Draft {
    /// Writes all that comes.
    pub(super) async fn fill(self, mut content: ContentStream) -> Result<Self, Unfilled> {
        let Self { parent, mut file } = self;
        let mut at = 0u64;
        while let Some(piece) = std::future::poll_fn(|context| content.as_mut().poll_next(context)).await {
            let piece = piece.map_err(Unfilled::Sender)?;
            let written = tokio::task::spawn_blocking(move || {
                let written = file.write_all_at(&piece, at);
                (file, written.map(|()| u64::try_from(piece.len()).unwrap_or(0)))
            });
            let (same, written) = written.await.map_err(|stopped| Unfilled::Disk(io::Error::other(stopped)))?;
            file = same;
            at += written.map_err(Unfilled::Disk)?;
        }
        Ok(Self { parent, file })
    }

    /// Gives it its owner, its permissions and its name.
    pub(super) fn finish(self, path: &VolumePath, options: VolumeWrite) -> io::Result<VolumeEntry> {
        let name = path.as_path().file_name().ok_or(Errno::INVAL)?;
        let before = look_at_target(&self.parent, name, options)?;
        // Room is found when the kernel writes it out; who is told that it is there must not lose it to the limit.
        self.file.sync_data()?;
        let kept = before.as_ref().map_or(options.change, |before| EntryChange {
            uid: options.change.uid.or(Some(before.uid)),
            gid: options.change.gid.or(Some(before.gid)),
            mode: options.change.mode.or(Some(before.mode)),
        });
        let file = OwnedFd::from(self.file);
        give(&file, kept, FILE_MODE)?;
        if before.is_none() {
            match rustix::fs::linkat(&file, "", &self.parent, name, AtFlags::EMPTY_PATH) {
                Err(Errno::EXIST) if options.overwrite => {}
                linked => {
                    linked?;
                    return entry_in(&self.parent, name, path.as_path());
                }
            }
        }
        let passing = format!(".belljar-{}", belljar_types::VolumeId::random());
        rustix::fs::linkat(&file, "", &self.parent, passing.as_str(), AtFlags::EMPTY_PATH)?;
        if let Err(errno) = rustix::fs::renameat(&self.parent, passing.as_str(), &self.parent, name) {
            let _ = rustix::fs::unlinkat(&self.parent, passing.as_str(), AtFlags::empty());
            return Err(errno.into());
        }
        entry_in(&self.parent, name, path.as_path())
    }
}
