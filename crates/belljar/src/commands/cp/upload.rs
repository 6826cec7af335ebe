//! Into a sandbox: a directory at a time, files streamed, links last because nothing may be written through one that was just made.

use std::fs::{FileType, Metadata};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use belljar_client::{Body, ClientError, NewFile, Patience, StartProcess};
use belljar_types::{ExitStatus, FileKind, GuestPath, Invalid, OutputEvent, SandboxId, Termination};
use futures_util::{StreamExt, TryStreamExt};
use tokio::io::AsyncRead;
use tokio_util::io::ReaderStream;

use super::place::{joined, last_name};
use super::{Copying, TOGETHER};
use crate::command_error::CommandError;

const PIECE: usize = 256 << 10;
/// Links that are made by one command; all of them fit on a command line.
const LINKS_TOGETHER: usize = 100;
/// The API has no verb for links: `ln` in the sandbox makes them. Paths are the home's, as everywhere in `cp`.
const MAKE_LINKS: &str = r#"cd && while [ $# -gt 1 ]; do ln -sfn -- "$1" "$2" || exit 1; shift 2; done"#;

/// Writes standard input into a file.
pub(super) async fn from_stream(copying: &Copying, sandbox: &SandboxId, path: &GuestPath) -> Result<(), CommandError> {
    let target = Target { copying, sandbox };
    target.write(path, 0o644, tokio::io::stdin()).await
}

/// Copies a file or a directory of this machine.
pub(super) async fn from_disk(copying: &Copying, from: &Path, sandbox: &SandboxId, path: &GuestPath) -> Result<(), CommandError> {
    let metadata = std::fs::metadata(from).map_err(CommandError::file("find", from))?;
    let target = Target { copying, sandbox };
    let into = target.is_directory(path).await?;
    let path = match (into, own_name(from)) {
        (true, Some(name)) => joined(path, &name).map_err(|invalid| refused(&invalid))?,
        _ => path.clone(),
    };
    if metadata.is_dir() {
        return target.tree(from, &path).await;
    }
    target.file(from, &metadata, &path).await
}

/// The name a path goes by. `.` and `/` have none: what they hold is put into the directory, as `cp -r . there` does.
fn own_name(path: &Path) -> Option<Vec<u8>> {
    last_name(path.as_os_str().as_bytes()).map(OsStringExt::into_vec)
}

fn refused(invalid: &Invalid) -> CommandError {
    CommandError::Refused(invalid.to_string())
}

struct Link {
    target: PathBuf,
    at: GuestPath,
}

struct Target<'a> {
    copying: &'a Copying,
    sandbox: &'a SandboxId,
}

impl Target<'_> {
    /// Whether the path is a directory there, or a link to one. A path that ends in a slash is meant to be one.
    async fn is_directory(&self, path: &GuestPath) -> Result<bool, CommandError> {
        let inside = joined(path, b".").map_err(|invalid| refused(&invalid))?;
        match self.copying.client.stat(self.sandbox, &inside, self.copying.user.as_deref()).await {
            Ok(entry) => Ok(entry.kind() == FileKind::Directory),
            Err(ClientError::Refused(problem)) if matches!(problem.code.as_str(), "file_not_found" | "guest_refused") => {
                if path.as_bytes().ends_with(b"/") {
                    self.make_directory(path).await?;
                    return Ok(true);
                }
                Ok(false)
            }
            Err(error) => Err(CommandError::asked(format!("find {path} in sandbox {}", self.sandbox))(error)),
        }
    }

    async fn make_directory(&self, path: &GuestPath) -> Result<(), CommandError> {
        let made = self.copying.client.make_directory(self.sandbox, path, self.copying.user.as_deref()).await;
        made.map_err(CommandError::asked(format!("make the directory {path} in sandbox {}", self.sandbox)))
    }

    /// Copies a directory, one directory after the other; links last.
    async fn tree(&self, from: &Path, path: &GuestPath) -> Result<(), CommandError> {
        let mut links = Vec::new();
        let mut modes = Vec::new();
        let mut waiting = vec![(from.to_owned(), path.clone())];
        while let Some((from, path)) = waiting.pop() {
            self.make_directory(&path).await?;
            self.copying.report.directory();
            let mode = std::fs::metadata(&from).map_err(CommandError::file("look at", &from))?.permissions().mode() & 0o777;
            if mode != 0o755 {
                modes.push((path.clone(), mode));
            }
            let entries = std::fs::read_dir(&from).map_err(CommandError::file("list", &from))?;
            let mut files = Vec::new();
            for entry in entries {
                let entry = entry.map_err(CommandError::file("list", &from))?;
                let (at, kind) = (joined(&path, entry.file_name().as_bytes()).map_err(|invalid| refused(&invalid))?, entry.file_type());
                match kind.map_err(CommandError::file("look at", entry.path()))? {
                    kind if kind.is_dir() => waiting.push((entry.path(), at)),
                    kind if kind.is_file() => files.push((entry.path(), at)),
                    kind if kind.is_symlink() => {
                        let target = std::fs::read_link(entry.path()).map_err(CommandError::file("read the link", entry.path()))?;
                        links.push(Link { target, at });
                    }
                    kind => self.copying.report.leave_out(entry.path().as_os_str().as_bytes(), what(kind)),
                }
            }
            let copies = futures_util::stream::iter(files).map(|(from, at)| async move {
                let metadata = std::fs::metadata(&from).map_err(CommandError::file("look at", &from))?;
                self.file(&from, &metadata, &at).await
            });
            let mut copies = copies.buffer_unordered(TOGETHER);
            while copies.try_next().await?.is_some() {}
        }
        self.links(links).await?;
        // Deepest first, and after everything is in them: a directory may be read-only.
        for (path, mode) in modes.into_iter().rev() {
            let changed = self.copying.client.set_mode(self.sandbox, &path, mode, self.copying.user.as_deref()).await;
            changed.map_err(CommandError::asked(format!("set the permissions of {path} in sandbox {}", self.sandbox)))?;
        }
        Ok(())
    }

    async fn file(&self, from: &Path, metadata: &Metadata, path: &GuestPath) -> Result<(), CommandError> {
        let file = tokio::fs::File::open(from).await.map_err(CommandError::file("read", from))?;
        self.write(path, metadata.permissions().mode() & 0o777, file).await
    }

    async fn write(&self, path: &GuestPath, mode: u32, content: impl AsyncRead + Send + 'static) -> Result<(), CommandError> {
        let bar = self.copying.report.bar();
        let pieces = ReaderStream::with_capacity(content, PIECE).inspect_ok(move |piece| bar.inc(piece.len() as u64));
        let how = NewFile { user: self.copying.user.as_deref(), mode: Some(mode), parents: false };
        let written = self.copying.client.write_file(self.sandbox, path, how, Body::wrap_stream(pieces)).await;
        written.map_err(CommandError::asked(format!("write {path} in sandbox {}", self.sandbox)))?;
        self.copying.report.file();
        Ok(())
    }

    async fn links(&self, links: Vec<Link>) -> Result<(), CommandError> {
        let mut pairs = Vec::new();
        for link in links {
            match (link.target.to_str(), std::str::from_utf8(link.at.as_bytes())) {
                (Some(target), Ok(at)) => pairs.push((target.to_owned(), at.to_owned())),
                _ => self.copying.report.leave_out(link.at.as_bytes(), "it is a link whose name or target is not UTF-8"),
            }
        }
        for some in pairs.chunks(LINKS_TOGETHER) {
            let arguments = some.iter().flat_map(|(target, at)| [target.clone(), at.clone()]);
            let argv = ["/bin/sh", "-c", MAKE_LINKS, "sh"].map(str::to_owned).into_iter().chain(arguments);
            let process = StartProcess { user: self.copying.user.clone(), ..StartProcess::new(argv) };
            let attempt = CommandError::asked(format!("make links in sandbox {}", self.sandbox));
            match self.end_of(&process).await.map_err(attempt)? {
                Some(ExitStatus { termination: Termination::Exited(0), .. }) => self.copying.report.links(some.len()),
                _ => some
                    .iter()
                    .for_each(|(_, at)| self.copying.report.leave_out(at.as_bytes(), "`ln` in the sandbox could not make the link")),
            }
        }
        Ok(())
    }

    async fn end_of(&self, process: &StartProcess) -> Result<Option<ExitStatus>, ClientError> {
        let patience = Arc::new(Patience::new(std::time::Duration::from_secs(60)));
        let reading = self.copying.client.start_attached(self.sandbox, process).await?;
        let mut follower = belljar_client::Follower::new(
            self.copying.client.clone(),
            self.sandbox.clone(),
            process.id.clone(),
            belljar_types::Offsets::default(),
            patience,
        )
        .resuming(reading);
        while let Some(event) = follower.next().await? {
            if let OutputEvent::Exit(status) = event {
                return Ok(Some(status));
            }
        }
        Ok(None)
    }
}

fn what(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    if kind.is_fifo() {
        "it is a pipe"
    } else if kind.is_socket() {
        "it is a socket"
    } else {
        "it is a device"
    }
}
