//! Files on the wire.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Which file, and who acts.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PathQuery {
    /// The path: absolute, or relative to the user's home.
    #[param(example = "/tmp/hello.txt")]
    pub(crate) path: Option<String>,
    /// The path in base64, if it is not UTF-8.
    pub(crate) path_base64: Option<String>,
    /// Who acts; the template's user when left out.
    #[param(example = "user")]
    pub(crate) user: Option<String>,
}

/// How to write a file.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WriteQuery {
    /// The path: absolute, or relative to the user's home.
    #[param(example = "/tmp/hello.txt")]
    pub(crate) path: Option<String>,
    /// The path in base64, if it is not UTF-8.
    pub(crate) path_base64: Option<String>,
    /// Who writes; new files and directories are theirs.
    #[param(example = "user")]
    pub(crate) user: Option<String>,
    /// Where to begin. When left out, the file is cut to nothing first.
    #[param(example = 0)]
    pub(crate) offset: Option<u64>,
    /// Permissions of a file that is made anew, in octal; 0644 when left out.
    #[param(example = "0644")]
    pub(crate) mode: Option<String>,
    /// Make missing parent directories.
    #[serde(default)]
    #[param(example = true)]
    pub(crate) parents: bool,
}

/// Which directory, and how deep.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListFilesQuery {
    /// The directory.
    #[param(example = "/tmp")]
    pub(crate) path: Option<String>,
    /// The path in base64, if it is not UTF-8.
    pub(crate) path_base64: Option<String>,
    /// Who looks.
    #[param(example = "user")]
    pub(crate) user: Option<String>,
    /// 1 (default) is its own entries, 2 those of its directories too, and so on up to 64.
    #[param(minimum = 1, maximum = 64, example = 1)]
    pub(crate) depth: Option<u32>,
    /// Stop after this many: 1 to 100000; 10000 when left out.
    #[param(minimum = 1, maximum = 100000, example = 1000)]
    pub(crate) max_entries: Option<u32>,
}

/// What to watch.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WatchQuery {
    /// The directory.
    #[param(example = "/tmp")]
    pub(crate) path: Option<String>,
    /// The path in base64, if it is not UTF-8.
    pub(crate) path_base64: Option<String>,
    /// Who looks.
    #[param(example = "user")]
    pub(crate) user: Option<String>,
    /// What is below it, too.
    #[serde(default)]
    #[param(example = false)]
    pub(crate) recursive: bool,
}

/// An extended attribute of a file.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AttributeQuery {
    /// The file.
    #[param(example = "/tmp/hello.txt")]
    pub(crate) path: Option<String>,
    /// The path in base64, if it is not UTF-8.
    pub(crate) path_base64: Option<String>,
    /// Who acts.
    #[param(example = "user")]
    pub(crate) user: Option<String>,
    /// The attribute's name.
    #[param(example = "user.note")]
    pub(crate) name: String,
}

/// An attribute's value.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AttributeValue {
    /// The bytes.
    #[schema(example = "aGVsbG8=")]
    pub(crate) value_base64: String,
}

/// What a path is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = File)]
pub(crate) struct FileView {
    /// The path; if it is not UTF-8, an approximation.
    #[schema(example = "/tmp/hello.txt")]
    pub(crate) path: String,
    /// The path, if it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_base64: Option<String>,
    /// `file`, `directory`, `symlink` or `other`.
    #[schema(example = "file")]
    pub(crate) kind: &'static str,
    /// Bytes.
    pub(crate) size: u64,
    /// Permissions in octal.
    #[schema(example = "0644")]
    pub(crate) mode: String,
    /// The owner's number.
    pub(crate) uid: u32,
    /// The group's number.
    pub(crate) gid: u32,
    /// The owner's name.
    #[schema(required = true)]
    pub(crate) owner: Option<String>,
    /// The group's name.
    #[schema(required = true)]
    pub(crate) group: Option<String>,
    /// When its content last changed.
    #[schema(example = "2026-11-15T06:00:00.000Z")]
    pub(crate) modified_at: String,
    /// Where a symbolic link points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) symlink_target: Option<String>,
    /// The same, if it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) symlink_target_base64: Option<String>,
}

/// What a directory holds.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FileList {
    /// Its entries.
    pub(crate) entries: Vec<FileView>,
}

/// A directory to make, with its parents.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MakeDirectoryRequest {
    /// The path.
    #[schema(example = "/tmp/made")]
    pub(crate) path: Option<String>,
    /// The path in base64, if it is not UTF-8.
    pub(crate) path_base64: Option<String>,
    /// Whose it is to be.
    pub(crate) user: Option<String>,
}

/// Whether a directory was made.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MakeDirectoryResult {
    /// `false`: it was there.
    pub(crate) created: bool,
}

/// A move; a file at the new place is replaced.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MoveRequest {
    /// From where.
    #[schema(example = "/tmp/hello.txt")]
    pub(crate) from: Option<String>,
    /// The same in base64, if it is not UTF-8.
    pub(crate) from_base64: Option<String>,
    /// To where.
    #[schema(example = "/tmp/moved.txt")]
    pub(crate) to: Option<String>,
    /// The same in base64, if it is not UTF-8.
    pub(crate) to_base64: Option<String>,
    /// Who acts.
    pub(crate) user: Option<String>,
}

/// New permissions or owner.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeFileRequest {
    /// The path.
    #[schema(example = "/tmp/hello.txt")]
    pub(crate) path: Option<String>,
    /// The path in base64, if it is not UTF-8.
    pub(crate) path_base64: Option<String>,
    /// Who acts.
    pub(crate) user: Option<String>,
    /// Permissions in octal.
    #[schema(example = "0600")]
    pub(crate) mode: Option<String>,
    /// The new owner's number.
    pub(crate) uid: Option<u32>,
    /// The new group's number.
    pub(crate) gid: Option<u32>,
}

/// What to look for.
#[derive(Debug, Default, Deserialize, ToSchema, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SearchRequest {
    /// Where to begin; the user's home when left out.
    #[param(example = "/etc")]
    #[schema(example = "/etc")]
    pub(crate) path: Option<String>,
    /// The path in base64, if it is not UTF-8.
    pub(crate) path_base64: Option<String>,
    /// Who looks.
    pub(crate) user: Option<String>,
    /// Shell pattern for the name.
    #[param(example = "host*")]
    #[schema(example = "host*")]
    pub(crate) name: Option<String>,
    /// Text to find in files; names only when left out.
    #[param(example = "localhost")]
    #[schema(example = "localhost")]
    pub(crate) content: Option<String>,
    /// Stop after this many: 1 to 100000; 1000 when left out.
    #[param(minimum = 1, maximum = 100000, example = 100)]
    #[schema(minimum = 1, maximum = 100000, example = 100)]
    pub(crate) max_hits: Option<u32>,
}

/// One line of a search or a watch, as NDJSON or as the data of a server-sent event.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
#[schema(example = json!({"type": "hit", "path": "/etc/hosts", "line": 1, "text": "127.0.0.1 localhost"}))]
pub(crate) enum FileLine {
    /// Something found.
    Hit {
        /// Where.
        path: String,
        /// The path, if it is not UTF-8.
        #[serde(skip_serializing_if = "Option::is_none")]
        path_base64: Option<String>,
        /// Line number from 1, for content.
        line: Option<u64>,
        /// The line, shortened; bytes that are not UTF-8 are replaced.
        text: String,
    },
    /// The search ended.
    Done {
        /// How many hits there were.
        hits: u64,
    },
    /// The watch is in place: whatever happens from now on is told.
    Watching,
    /// Something happened.
    Event {
        /// `created`, `written`, `attributes`, `removed`, `renamed`, or `overflowed`: events were lost, look again.
        kind: &'static str,
        /// Below the watched directory; empty for itself.
        name: String,
        /// The name, if it is not UTF-8.
        #[serde(skip_serializing_if = "Option::is_none")]
        name_base64: Option<String>,
    },
    /// Nothing happened for 15 seconds; the connection lives.
    Heartbeat,
    /// It cannot go on. The last line.
    Error {
        /// Why.
        #[schema(value_type = crate::errors::ProblemSchema)]
        problem: serde_json::Value,
    },
}
