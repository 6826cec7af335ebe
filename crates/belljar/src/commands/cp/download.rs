//! Out of a sandbox. Names, sizes and links are the sandbox's word and nothing more; where things land is decided by [`Landing`].

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::Path;

use belljar_client::FileEntry;
use belljar_types::{FileKind, GuestPath, SandboxId};
use futures_util::{StreamExt, TryStreamExt};

use super::landing::{Landing, stays_inside};
use super::place::{joined, last_name, plain_name};
use super::{Copying, TOGETHER};
use crate::command_error::CommandError;
use crate::screen::Silent;

/// The server gives no more of one directory.
const MOST_ENTRIES: usize = 100_000;

/// Prints a file.
pub(super) async fn to_stream(copying: &Copying, sandbox: &SandboxId, path: &GuestPath) -> Result<(), CommandError> {
    let read = || CommandError::asked(format!("read {path} in sandbox {sandbox}"));
    let download = copying.client.read_file(sandbox, path, copying.user.as_deref()).await.map_err(read())?;
    let mut pieces = std::pin::pin!(download.pieces());
    while let Some(piece) = pieces.try_next().await.map_err(read())? {
        std::io::stdout().lock().write_all(&piece).map_err(|source| Silent { source })?;
        copying.report.bar().inc(piece.len() as u64);
    }
    copying.report.file();
    Ok(std::io::stdout().lock().flush().map_err(|source| Silent { source })?)
}

/// Copies a file or a directory to a path on this machine.
pub(super) async fn to_disk(copying: &Copying, sandbox: &SandboxId, path: &GuestPath, to: &Path) -> Result<(), CommandError> {
    let (kind, mode) = what_is(copying, sandbox, path).await?;
    let (parent, name) = if to.is_dir() {
        (to, last_name(path.as_bytes()))
    } else {
        let name = to.file_name().filter(|_| !to.as_os_str().as_encoded_bytes().ends_with(b"/"));
        let name = name.ok_or_else(|| CommandError::Refused(format!("{} is not a directory", to.display())))?;
        (to.parent().unwrap_or(Path::new(".")), Some(name.to_owned()))
    };
    let landing = Landing::open(parent).map_err(CommandError::file("open the directory", parent))?;
    let walk = Walk { copying, sandbox, shown: to };
    match (kind, name) {
        (FileKind::Directory, Some(name)) => {
            let directory = landing.directory(&name, mode).map_err(CommandError::file("make the directory", to))?;
            copying.report.directory();
            walk.tree(&directory, path).await
        }
        // `SANDBOX:/` and `SANDBOX:.` have no name of their own: what they hold is put there.
        (FileKind::Directory, None) => walk.tree(&landing, path).await,
        (_, Some(name)) => walk.file(&landing, &name, mode, path).await,
        (_, None) => Err(CommandError::Refused(format!("{path} names no file"))),
    }
}

/// What the person meant: of a link, what it leads to.
async fn what_is(copying: &Copying, sandbox: &SandboxId, path: &GuestPath) -> Result<(FileKind, u32), CommandError> {
    let stat = async |path: &GuestPath| copying.client.stat(sandbox, path, copying.user.as_deref()).await;
    let entry = stat(path).await.map_err(CommandError::asked(format!("find {path} in sandbox {sandbox}")))?;
    if entry.kind() != FileKind::Symlink {
        return Ok((entry.kind(), entry.mode()));
    }
    let inside = joined(path, b".").map_err(|invalid| CommandError::Refused(invalid.to_string()))?;
    Ok(match stat(&inside).await {
        Ok(entry) if entry.kind() == FileKind::Directory => (FileKind::Directory, entry.mode()),
        _ => (FileKind::File, 0o644),
    })
}

struct Walk<'a> {
    copying: &'a Copying,
    sandbox: &'a SandboxId,
    /// The destination, for errors.
    shown: &'a Path,
}

impl Walk<'_> {
    /// Copies what a directory holds, one directory after the other.
    async fn tree(&self, root: &Landing, path: &GuestPath) -> Result<(), CommandError> {
        let mut waiting = vec![(path.clone(), Vec::new())];
        while let Some((path, below)) = waiting.pop() {
            let names = self.directory(root, &path, &below).await?;
            for name in names {
                let inner = joined(&path, name.as_encoded_bytes()).map_err(|invalid| CommandError::Refused(invalid.to_string()))?;
                let mut below: Vec<OsString> = below.clone();
                below.push(name);
                waiting.push((inner, below));
            }
        }
        Ok(())
    }

    /// Copies a directory's own entries and gives the names of the directories in it, which were made.
    async fn directory(&self, root: &Landing, path: &GuestPath, below: &[OsString]) -> Result<Vec<OsString>, CommandError> {
        let listed = self.copying.client.list_directory(self.sandbox, path, self.copying.user.as_deref()).await;
        let entries = listed.map_err(CommandError::asked(format!("list {path} in sandbox {}", self.sandbox)))?;
        if entries.len() >= MOST_ENTRIES {
            return Err(CommandError::Advised {
                what: format!("{path} has {MOST_ENTRIES} entries or more, which is too many to list"),
                hint: format!("pack it: belljar exec {} -- tar c {path} | tar x", self.sandbox),
            });
        }
        let here = root.below(below).map_err(CommandError::file("open the directory", self.shown))?;
        let report = &self.copying.report;
        let (mut files, mut directories, mut links) = (Vec::new(), Vec::new(), Vec::new());
        for entry in entries {
            let Some(name) = last_name(&entry.path()).filter(|name| plain_name(name.as_encoded_bytes()).is_some()) else {
                report.leave_out(&entry.path(), "its name cannot be used here");
                continue;
            };
            match entry.kind() {
                FileKind::File => files.push((name, entry)),
                FileKind::Directory => {
                    here.directory(&name, entry.mode()).map_err(CommandError::file("make a directory in", self.shown))?;
                    report.directory();
                    directories.push(name);
                }
                FileKind::Symlink => links.push((name, entry)),
                FileKind::Other => report.leave_out(&entry.path(), "it is a device, a pipe or a socket"),
            }
        }
        let copies = futures_util::stream::iter(files).map(|(name, entry)| self.entry(&here, path, name, entry));
        let mut copies = copies.buffer_unordered(TOGETHER);
        while copies.try_next().await?.is_some() {}
        for (name, entry) in links {
            self.link(&here, &name, &entry, below.len())?;
        }
        Ok(directories)
    }

    async fn entry(&self, here: &Landing, path: &GuestPath, name: OsString, entry: FileEntry) -> Result<(), CommandError> {
        let path = joined(path, name.as_encoded_bytes()).map_err(|invalid| CommandError::Refused(invalid.to_string()))?;
        self.file(here, &name, entry.mode(), &path).await
    }

    async fn file(&self, here: &Landing, name: &OsStr, mode: u32, path: &GuestPath) -> Result<(), CommandError> {
        let read = || CommandError::asked(format!("read {path} in sandbox {}", self.sandbox));
        let shown = || self.shown.join(name);
        let download = self.copying.client.read_file(self.sandbox, path, self.copying.user.as_deref()).await.map_err(read())?;
        let file = here.file(name, mode).map_err(|source| CommandError::File { operation: "write", path: shown(), source })?;
        let mut file = tokio::fs::File::from_std(file);
        let mut pieces = std::pin::pin!(download.pieces());
        while let Some(piece) = pieces.try_next().await.map_err(read())? {
            let written = tokio::io::AsyncWriteExt::write_all(&mut file, &piece).await;
            written.map_err(|source| CommandError::File { operation: "write", path: shown(), source })?;
            self.copying.report.bar().inc(piece.len() as u64);
        }
        tokio::io::AsyncWriteExt::flush(&mut file).await.map_err(|source| CommandError::File {
            operation: "write",
            path: shown(),
            source,
        })?;
        self.copying.report.file();
        Ok(())
    }

    fn link(&self, here: &Landing, name: &OsStr, entry: &FileEntry, depth: usize) -> Result<(), CommandError> {
        let target = entry.symlink_target().unwrap_or_default();
        if !stays_inside(depth, &target) {
            self.copying.report.leave_out(&entry.path(), "it is a link that leads out of the directory");
            return Ok(());
        }
        here.link(name, &target).map_err(CommandError::file("make a link in", self.shown))?;
        self.copying.report.links(1);
        Ok(())
    }
}
