//! Files in a sandbox. Paths are bytes: where they are not UTF-8 they travel as base64.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use belljar_types::{FileKind, GuestPath, SandboxId};
use bytes::Bytes;
use futures_util::Stream;
use reqwest::{Body, Method};
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::error::ClientError;

/// Entries of a directory that are read at once; the server's maximum.
const MOST_ENTRIES: &str = "100000";

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KindName {
    File,
    Directory,
    Symlink,
    Other,
}

/// What a path is, as the server tells it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FileEntry {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_base64: Option<String>,
    kind: KindName,
    /// Bytes.
    pub size: u64,
    mode: String,
    /// The owner's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
    /// The owner's name.
    pub owner: Option<String>,
    /// The group's name.
    pub group: Option<String>,
    /// When its content last changed, RFC 3339.
    pub modified_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    symlink_target: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    symlink_target_base64: Option<String>,
}

impl FileEntry {
    /// The path as bytes.
    pub fn path(&self) -> Vec<u8> {
        either(&self.path, self.path_base64.as_deref())
    }

    /// What kind of thing it is.
    pub fn kind(&self) -> FileKind {
        match self.kind {
            KindName::File => FileKind::File,
            KindName::Directory => FileKind::Directory,
            KindName::Symlink => FileKind::Symlink,
            KindName::Other => FileKind::Other,
        }
    }

    /// Permission bits; none if they make no sense.
    pub fn mode(&self) -> u32 {
        u32::from_str_radix(&self.mode, 8).unwrap_or(0) & 0o7777
    }

    /// Where a symbolic link points.
    pub fn symlink_target(&self) -> Option<Vec<u8>> {
        self.symlink_target.as_ref().map(|target| either(target, self.symlink_target_base64.as_deref()))
    }
}

fn either(text: &str, base64: Option<&str>) -> Vec<u8> {
    base64.and_then(|coded| BASE64_STANDARD.decode(coded).ok()).unwrap_or_else(|| text.as_bytes().to_vec())
}

/// A file being read.
pub struct Download {
    /// Its size, if the server says.
    pub size: Option<u64>,
    answer: crate::request::Answer,
}

impl Download {
    pub(crate) fn of(answer: crate::request::Answer) -> Self {
        Self { size: answer.length(), answer }
    }

    /// Its bytes as they come.
    pub fn pieces(self) -> impl Stream<Item = Result<Bytes, ClientError>> + Send + 'static {
        self.answer.pieces()
    }
}

/// How to write a file.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewFile<'a> {
    /// Who writes.
    pub user: Option<&'a str>,
    /// Permission bits of a file that is made anew.
    pub mode: Option<u32>,
    /// Make missing parent directories.
    pub parents: bool,
}

#[derive(Deserialize)]
pub(crate) struct FileList {
    pub(crate) entries: Vec<FileEntry>,
}

#[derive(Serialize)]
struct PathBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
}

impl<'a> PathBody<'a> {
    fn new(path: &'a GuestPath, user: Option<&'a str>) -> Self {
        let text = std::str::from_utf8(path.as_bytes()).ok();
        let path_base64 = text.is_none().then(|| BASE64_STANDARD.encode(path.as_bytes()));
        Self { path: text, path_base64, user, mode: None }
    }
}

impl Client {
    /// Reads a file.
    pub async fn read_file(&self, sandbox: &SandboxId, path: &GuestPath, user: Option<&str>) -> Result<Download, ClientError> {
        let asking = self.ask(Method::GET, ["v1", "sandboxes", sandbox.as_str(), "files"]);
        let answer = asking.query(&PathBody::new(path, user)).send().await?;
        Ok(Download::of(answer))
    }

    /// Writes a file from bytes or a stream.
    pub async fn write_file(
        &self,
        sandbox: &SandboxId,
        path: &GuestPath,
        how: NewFile<'_>,
        content: impl Into<Body>,
    ) -> Result<FileEntry, ClientError> {
        let asking = self.ask(Method::PUT, ["v1", "sandboxes", sandbox.as_str(), "files"]);
        let query = PathBody { mode: how.mode.map(octal), ..PathBody::new(path, how.user) };
        let parents: &[(&str, bool)] = if how.parents { &[("parents", true)] } else { &[] };
        asking.query(&query).query(parents).bytes(content).fetch().await
    }

    /// What a path is; of a link itself, not of what it points to.
    pub async fn stat(&self, sandbox: &SandboxId, path: &GuestPath, user: Option<&str>) -> Result<FileEntry, ClientError> {
        let asking = self.ask(Method::GET, ["v1", "sandboxes", sandbox.as_str(), "files", "stat"]);
        asking.query(&PathBody::new(path, user)).fetch().await
    }

    /// What a directory holds, itself only.
    pub async fn list_directory(&self, sandbox: &SandboxId, path: &GuestPath, user: Option<&str>) -> Result<Vec<FileEntry>, ClientError> {
        let asking = self.ask(Method::GET, ["v1", "sandboxes", sandbox.as_str(), "files", "list"]);
        let list: FileList = asking.query(&PathBody::new(path, user)).query(&[("max_entries", MOST_ENTRIES)]).fetch().await?;
        Ok(list.entries)
    }

    /// Makes a directory and its parents.
    pub async fn make_directory(&self, sandbox: &SandboxId, path: &GuestPath, user: Option<&str>) -> Result<(), ClientError> {
        let asking = self.ask(Method::POST, ["v1", "sandboxes", sandbox.as_str(), "files", "mkdir"]);
        asking.json(&PathBody::new(path, user)).done().await
    }

    /// Changes permission bits.
    pub async fn set_mode(&self, sandbox: &SandboxId, path: &GuestPath, mode: u32, user: Option<&str>) -> Result<(), ClientError> {
        let asking = self.ask(Method::PATCH, ["v1", "sandboxes", sandbox.as_str(), "files"]);
        asking.json(&PathBody { mode: Some(octal(mode)), ..PathBody::new(path, user) }).done().await
    }
}

fn octal(mode: u32) -> String {
    format!("{:04o}", mode & 0o7777)
}
