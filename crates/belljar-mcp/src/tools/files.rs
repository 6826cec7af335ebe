//! Files: read a piece, write whole, replace a passage, list.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use belljar_client::{FileEntry, NewFile};
use belljar_output::Escapes;
use belljar_types::{FileKind, GuestPath, SandboxId, escape_untrusted};
use bytes::Bytes;
use futures_util::TryStreamExt;
use rmcp::model::{CallToolResult, ContentBlock};
use rmcp::schemars::JsonSchema;
use serde::Deserialize;

use super::Outcome;
use super::passage::{Passage, replaced};
use crate::error::ToolError;
use crate::lodgings::Lodgings;
use crate::text;

const DEFAULT_LINES: u64 = 2000;
/// The largest file that is edited, and the largest picture that is shown.
const MOST_OF_A_FILE: usize = 4 << 20;
/// Enough to tell a picture or a binary file from text.
const BEGINNING: usize = 4096;
const MOST_ENTRIES: usize = 1000;

/// Read a file in the sandbox.
///
/// Text is given by lines, pictures (PNG, JPEG, GIF, WebP) as pictures. Characters that would be invisible are written as \u{…}.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct ReadFile {
    /// Its path; a relative one begins in the user's home.
    path: String,
    /// The first line to give, counted from 1. 1 when left out.
    first_line: Option<u64>,
    /// How many lines at most. 2000 when left out.
    lines: Option<u64>,
    /// Another sandbox of this connection, by the id that fork_sandbox gave.
    sandbox: Option<String>,
}

/// Write a text file in the sandbox, with all its directories; what was there before is replaced.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct WriteFile {
    /// Its path; a relative one begins in the user's home.
    path: String,
    /// All of its content.
    content: String,
    /// Another sandbox of this connection, by the id that fork_sandbox gave.
    sandbox: Option<String>,
}

/// Replace a passage of a text file in the sandbox.
///
/// The passage must be in the file exactly once, spaces and line breaks included; with `all`, every occurrence is replaced.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct EditFile {
    /// Its path; a relative one begins in the user's home.
    path: String,
    /// The passage as it is.
    old_text: String,
    /// The passage as it is to be.
    new_text: String,
    /// Replace it wherever it occurs.
    #[serde(default)]
    all: bool,
    /// Another sandbox of this connection, by the id that fork_sandbox gave.
    sandbox: Option<String>,
}

/// List what is in a directory of the sandbox.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct ListDirectory {
    /// Its path; a relative one begins in the user's home, which is meant when left out.
    path: Option<String>,
    /// Another sandbox of this connection, by the id that fork_sandbox gave.
    sandbox: Option<String>,
}

pub(super) async fn read(lodgings: &Lodgings, asked: ReadFile) -> Outcome {
    let path = GuestPath::new(asked.path)?;
    let sandbox = lodgings.find(asked.sandbox.as_deref()).await?;
    let failed = |error| lodgings.failed(&sandbox, "read the file", error);
    let download = lodgings.patiently(|| lodgings.client.read_file(&sandbox, &path, None)).await.map_err(failed)?;
    let size = download.size;
    let mut pieces = std::pin::pin!(download.pieces());
    let mut beginning = Vec::new();
    while beginning.len() < BEGINNING
        && let Some(piece) = pieces.try_next().await.map_err(failed)?
    {
        beginning.extend_from_slice(&piece);
    }
    if let Some(kind) = picture(&beginning) {
        while let Some(piece) = pieces.try_next().await.map_err(failed)? {
            beginning.extend_from_slice(&piece);
            if beginning.len() > MOST_OF_A_FILE {
                return Err(ToolError::Content { path: path.to_string(), what: "is a picture of more than 4 MiB; make a smaller one" });
            }
        }
        return Ok(CallToolResult::success(vec![ContentBlock::image(BASE64_STANDARD.encode(beginning), kind)]));
    }
    if beginning.iter().take(BEGINNING).any(|byte| *byte == 0) {
        let size = size.map_or_else(String::new, |size| format!(", {size} bytes"));
        return Ok(super::words(format!("[{path} is not text{size}; use run_command with file, xxd or a program that reads it]")));
    }
    let mut passage = Passage::new(asked.first_line.unwrap_or(1).max(1), asked.lines.unwrap_or(DEFAULT_LINES), text::ROOM);
    passage.push(&beginning);
    while !passage.is_full()
        && let Some(piece) = pieces.try_next().await.map_err(failed)?
    {
        passage.push(&piece);
    }
    let (bytes, note) = passage.finish();
    let mut shown = text::gatherer(Escapes::Show);
    shown.push(&bytes);
    Ok(super::words(text::gathered(shown) + &note))
}

/// The type of a picture, by how it begins.
fn picture(beginning: &[u8]) -> Option<&'static str> {
    match beginning {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

pub(super) async fn write(lodgings: &Lodgings, asked: WriteFile) -> Outcome {
    let path = GuestPath::new(asked.path)?;
    let sandbox = lodgings.find(asked.sandbox.as_deref()).await?;
    put(lodgings, &sandbox, &path, asked.content.into()).await
}

async fn put(lodgings: &Lodgings, sandbox: &SandboxId, path: &GuestPath, content: Bytes) -> Outcome {
    let how = NewFile { parents: true, ..NewFile::default() };
    let written = lodgings.patiently(|| lodgings.client.write_file(sandbox, path, how, content.clone())).await;
    let written = written.map_err(|error| lodgings.failed(sandbox, "write the file", error))?;
    Ok(super::words(format!("[{path} has {} bytes now]", written.size)))
}

pub(super) async fn edit(lodgings: &Lodgings, asked: EditFile) -> Outcome {
    let path = GuestPath::new(asked.path)?;
    let sandbox = lodgings.find(asked.sandbox.as_deref()).await?;
    let failed = |error| lodgings.failed(&sandbox, "read the file", error);
    let content = |what| ToolError::Content { path: path.to_string(), what };
    let download = lodgings.patiently(|| lodgings.client.read_file(&sandbox, &path, None)).await.map_err(failed)?;
    let mut pieces = std::pin::pin!(download.pieces());
    let mut before = Vec::new();
    while let Some(piece) = pieces.try_next().await.map_err(failed)? {
        before.extend_from_slice(&piece);
        if before.len() > MOST_OF_A_FILE {
            return Err(content("has more than 4 MiB; edit it with a program, such as sed, through run_command"));
        }
    }
    let before = String::from_utf8(before).map_err(|_| content("is not UTF-8 text; edit it with a program through run_command"))?;
    let after = replaced(&before, &asked.old_text, &asked.new_text, asked.all);
    let after = after.map_err(|(found, advice)| ToolError::Replacing { path: path.to_string(), found, advice })?;
    put(lodgings, &sandbox, &path, after.into()).await
}

pub(super) async fn list(lodgings: &Lodgings, asked: ListDirectory) -> Outcome {
    let path = GuestPath::new(asked.path.unwrap_or_else(|| "/home/user".to_owned()))?;
    let sandbox = lodgings.find(asked.sandbox.as_deref()).await?;
    let listed = lodgings.patiently(|| lodgings.client.list_directory(&sandbox, &path, None)).await;
    let mut entries = listed.map_err(|error| lodgings.failed(&sandbox, "list the directory", error))?;
    entries.sort_by_cached_key(FileEntry::path);
    let left_out = entries.len().saturating_sub(MOST_ENTRIES);
    let mut lines: Vec<_> = entries.iter().take(MOST_ENTRIES).map(line).collect();
    if lines.is_empty() {
        lines.push(format!("[{path} is empty]"));
    }
    if left_out > 0 {
        lines.push(format!("[{left_out} more]"));
    }
    Ok(super::words(lines.join("\n")))
}

fn line(entry: &FileEntry) -> String {
    let path = escape_untrusted(&entry.path());
    match entry.kind() {
        FileKind::File => format!("{path}  {} bytes", entry.size),
        FileKind::Directory => format!("{path}/"),
        FileKind::Symlink => format!("{path} -> {}", escape_untrusted(&entry.symlink_target().unwrap_or_default())),
        FileKind::Other => format!("{path}  (a device, socket or pipe)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_known_by_how_they_begin() {
        for (bytes, kind) in [
            (&b"\x89PNG\r\n\x1a\n"[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"GIF89a", Some("image/gif")),
            (b"RIFF\0\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"RIFF\0\0\0\0WAVE", None),
            (b"text", None),
            (b"", None),
        ] {
            assert_eq!(picture(bytes), kind, "{bytes:?}");
        }
    }
}
