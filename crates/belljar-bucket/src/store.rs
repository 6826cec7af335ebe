//! The bucket with what only this mount knows: which inode is which key, what is being written, and directories that are empty.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use fuser::{Errno, INodeNo};
use futures_util::StreamExt as _;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt};

use crate::drafts::{Draft, Drafts};
use crate::error::errno;
use crate::nodes::{Kind, Node, Nodes, child};
use crate::windows::Window;

/// Directories that are only in this process's memory, at most.
const EMPTY_MAX: usize = 100_000;

#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) bucket: Arc<dyn ObjectStore>,
    pub(crate) drafts: Drafts,
    nodes: Mutex<Nodes>,
    /// Directories that were made and in which nothing is yet: a bucket has none of its own.
    made: Mutex<HashSet<Path>>,
    mounted_at: SystemTime,
}

/// What there is to know of a file or directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) number: INodeNo,
    pub(crate) kind: Kind,
    pub(crate) size: u64,
    pub(crate) modified: SystemTime,
}

impl Store {
    pub(crate) fn new(bucket: Arc<dyn ObjectStore>, prefix: Path, drafts: Drafts) -> Self {
        Self { bucket, drafts, nodes: Mutex::new(Nodes::new(prefix)), made: Mutex::default(), mounted_at: SystemTime::now() }
    }

    pub(crate) fn node(&self, number: INodeNo) -> Result<Node, Errno> {
        self.nodes().get(number)
    }

    pub(crate) fn forget(&self, number: INodeNo, lookups: u64) {
        self.nodes().forget(number, lookups);
    }

    pub(crate) fn key(&self, parent: INodeNo, name: &OsStr) -> Result<Path, Errno> {
        child(&self.node(parent)?.path, name)
    }

    /// What has this name, which the kernel is given with it.
    pub(crate) async fn lookup(&self, parent: INodeNo, name: &OsStr) -> Result<Seen, Errno> {
        let path = self.key(parent, name)?;
        let (kind, size, modified) = self.look(&path).await?;
        Ok(Seen { number: self.nodes().remember(&path, kind), kind, size, modified })
    }

    pub(crate) async fn attributes(&self, number: INodeNo) -> Result<Seen, Errno> {
        let node = self.node(number)?;
        if node.kind == Kind::Directory {
            return Ok(Seen { number, kind: node.kind, size: 0, modified: self.mounted_at });
        }
        let (kind, size, modified) = match self.drafts.get(number) {
            Some(draft) => (Kind::File, draft.state().await.size, SystemTime::now()),
            None => self.look(&node.path).await?,
        };
        if kind == node.kind { Ok(Seen { number, kind, size, modified }) } else { Err(Errno::ESTALE) }
    }

    /// A new file that somebody writes. It is in the bucket when it is closed, an empty one too.
    pub(crate) async fn create(&self, parent: INodeNo, name: &OsStr) -> Result<Seen, Errno> {
        let path = self.key(parent, name)?;
        let number = self.nodes().remember(&path, Kind::File);
        let draft = self.drafts.enter(number, async |_| Ok(())).await?;
        draft.truncate(0).await?;
        Ok(Seen { number, kind: Kind::File, size: 0, modified: SystemTime::now() })
    }

    /// Opens a file for writing. What it holds is fetched first unless it is to be emptied.
    pub(crate) async fn open_to_write(&self, number: INodeNo, empty: bool) -> Result<(), Errno> {
        let node = self.node(number)?;
        let fill = async |draft: &Draft| if empty { Ok(()) } else { self.fill(draft, &node.path).await };
        let draft = self.drafts.enter(number, fill).await?;
        if empty { draft.truncate(0).await } else { Ok(()) }
    }

    async fn fill(&self, draft: &Draft, path: &Path) -> Result<(), Errno> {
        let failed = |error| errno("get", path, &error);
        let mut content = self.bucket.get(path).await.map_err(failed)?.into_stream();
        let mut offset = 0;
        while let Some(bytes) = content.next().await {
            let bytes = bytes.map_err(failed)?;
            offset += u64::from(draft.write(offset, &bytes).await?);
        }
        draft.state().await.dirty = false;
        Ok(())
    }

    /// Opens a file for reading, as it is now.
    pub(crate) async fn open_to_read(&self, number: INodeNo) -> Result<Window, Errno> {
        let path = self.node(number)?.path;
        if self.drafts.get(number).is_some() {
            return Ok(Window::new(None, u64::MAX));
        }
        let found = self.bucket.head(&path).await.map_err(|error| errno("look at", &path, &error))?;
        Ok(Window::new(found.e_tag, found.size))
    }

    pub(crate) async fn read(&self, number: INodeNo, window: Option<&Window>, offset: u64, length: u32) -> Result<bytes::Bytes, Errno> {
        if let Some(draft) = self.drafts.get(number) {
            return draft.read(offset, length).await;
        }
        let path = self.node(number)?.path;
        let opened;
        let window = match window.filter(|window| window.size != u64::MAX) {
            Some(window) => window,
            // It was opened while somebody wrote it, and that one is done.
            None => {
                opened = self.open_to_read(number).await?;
                &opened
            }
        };
        let fetch = async |range| {
            let options = GetOptions { range: Some(GetRange::Bounded(range)), if_match: window.tag.clone(), ..GetOptions::default() };
            self.bucket.get_opts(&path, options).await?.bytes().await
        };
        window.read(offset, u64::from(length), fetch).await.map_err(|error| errno("get", &path, &error))
    }

    /// Makes sure that the bucket has what was written.
    pub(crate) async fn send(&self, number: INodeNo) -> Result<(), Errno> {
        let Some(draft) = self.drafts.get(number) else { return Ok(()) };
        let path = self.node(number)?.path;
        draft.send(self.bucket.as_ref(), &path).await
    }

    pub(crate) async fn truncate(&self, number: INodeNo, size: u64) -> Result<(), Errno> {
        if let Some(draft) = self.drafts.get(number) {
            return draft.truncate(size).await;
        }
        self.open_to_write(number, size == 0).await?;
        let Some(draft) = self.drafts.get(number) else { return Err(Errno::EIO) };
        let cut = draft.truncate(size).await;
        let sent = if cut.is_ok() { self.send(number).await } else { cut };
        self.drafts.leave(number, &draft).await;
        sent
    }

    pub(crate) async fn make_directory(&self, parent: INodeNo, name: &OsStr) -> Result<Seen, Errno> {
        let path = self.key(parent, name)?;
        match self.look(&path).await {
            Err(Errno::ENOENT) => {}
            Err(error) => return Err(error),
            Ok(_) => return Err(Errno::EEXIST),
        }
        {
            let mut made = self.made();
            if made.len() >= EMPTY_MAX {
                return Err(Errno::ENOSPC);
            }
            made.insert(path.clone());
        }
        let number = self.nodes().remember(&path, Kind::Directory);
        Ok(Seen { number, kind: Kind::Directory, size: 0, modified: SystemTime::now() })
    }

    pub(crate) async fn remove_directory(&self, parent: INodeNo, name: &OsStr) -> Result<(), Errno> {
        let path = self.key(parent, name)?;
        if self.look(&path).await?.0 != Kind::Directory {
            return Err(Errno::ENOTDIR);
        }
        if !self.list(&path).await?.is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        self.made().remove(&path);
        self.nodes().unname(&path);
        Ok(())
    }

    pub(crate) async fn remove(&self, parent: INodeNo, name: &OsStr) -> Result<(), Errno> {
        let path = self.key(parent, name)?;
        let number = self.nodes().number(&path);
        if let Some(draft) = number.and_then(|number| self.drafts.get(number)) {
            draft.state().await.gone = true;
        } else if self.look(&path).await?.0 == Kind::Directory {
            return Err(Errno::EISDIR);
        }
        match self.bucket.delete(&path).await {
            // It may never have been sent.
            Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(errno("delete", &path, &error)),
        }
        self.nodes().unname(&path);
        self.keep_directory(&path);
        Ok(())
    }

    /// Gives a file another name: a copy, then the old one goes. Directories are refused as if they lay elsewhere, and `mv` copies them.
    pub(crate) async fn rename(&self, from: Path, to: Path, replace: bool) -> Result<(), Errno> {
        if from == to {
            return Ok(());
        }
        let number = self.nodes().number(&from);
        match number.and_then(|number| self.drafts.get(number)) {
            Some(draft) => draft.send(self.bucket.as_ref(), &from).await?,
            None if self.look(&from).await?.0 == Kind::Directory => return Err(Errno::EXDEV),
            None => {}
        }
        match self.look(&to).await {
            Ok((Kind::Directory, ..)) => return Err(Errno::EISDIR),
            Ok(_) if !replace => return Err(Errno::EEXIST),
            Ok(_) | Err(Errno::ENOENT) => {}
            Err(error) => return Err(error),
        }
        self.bucket.copy(&from, &to).await.map_err(|error| errno("copy", &from, &error))?;
        self.bucket.delete(&from).await.map_err(|error| errno("delete", &from, &error))?;
        let replaced = self.nodes().number(&to);
        if let Some(draft) = replaced.and_then(|number| self.drafts.get(number)) {
            draft.state().await.gone = true;
        }
        self.nodes().rename(&from, &to);
        self.keep_directory(&from);
        Ok(())
    }

    /// What is in a directory and not, or not yet, in the bucket.
    pub(crate) fn only_here(&self, directory: &Path) -> Vec<(Path, Kind)> {
        let parent_of = |path: &Path| path.parent().unwrap_or_default() == *directory;
        let mut here: Vec<_> = self.made().iter().filter(|path| parent_of(path)).map(|path| (path.clone(), Kind::Directory)).collect();
        here.extend(self.nodes().files_in(directory, |number| self.drafts.get(number).is_some()));
        here
    }

    /// The directory of what is gone stays, as it would on a disk, though the bucket may have nothing below it any more.
    fn keep_directory(&self, of: &Path) {
        let root = self.nodes().get(INodeNo::ROOT).map(|node| node.path).unwrap_or_default();
        if let Some(parent) = of.parent().filter(|parent| *parent != root) {
            let mut made = self.made();
            if made.len() < EMPTY_MAX {
                made.insert(parent);
            }
        }
    }

    async fn look(&self, path: &Path) -> Result<(Kind, u64, SystemTime), Errno> {
        if self.made().contains(path) {
            return Ok((Kind::Directory, 0, self.mounted_at));
        }
        let number = self.nodes().number(path);
        if let Some(draft) = number.and_then(|number| self.drafts.get(number)) {
            let state = draft.state().await;
            if !state.gone {
                return Ok((Kind::File, state.size, SystemTime::now()));
            }
        }
        match self.bucket.head(path).await {
            Ok(found) => return Ok((Kind::File, found.size, found.last_modified.into())),
            Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(errno("look at", path, &error)),
        }
        match self.bucket.list(Some(path)).next().await {
            Some(Ok(_)) => Ok((Kind::Directory, 0, self.mounted_at)),
            Some(Err(error)) => Err(errno("look below", path, &error)),
            None => Err(Errno::ENOENT),
        }
    }

    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn made(&self) -> MutexGuard<'_, HashSet<Path>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
