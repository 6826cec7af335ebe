//! Messages of `filesystem.Filesystem`, in proto3's JSON, and what an upload answers.

use std::collections::BTreeMap;

/// `Stat`, `MakeDir`, `Remove`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct OfPath {
    pub(crate) path: String,
}

/// `ListDir`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct ListDir {
    pub(crate) path: String,
    pub(crate) depth: u32,
}

/// `Move`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Move {
    pub(crate) source: String,
    pub(crate) destination: String,
}

/// `WatchDir`; `CreateWatcher` is the same.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct WatchDir {
    pub(crate) path: String,
    pub(crate) recursive: bool,
    #[serde(alias = "includeEntry")]
    pub(crate) include_entry: bool,
}

/// `CreateWatcher`.
pub(crate) type CreateWatcher = WatchDir;

/// `GetWatcherEvents` and `RemoveWatcher`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct OfWatcher {
    #[serde(alias = "watcherId")]
    pub(crate) watcher_id: String,
}

/// A file or directory.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) path: String,
    /// proto3's JSON has 64-bit numbers as text.
    pub(crate) size: String,
    pub(crate) mode: u32,
    pub(crate) permissions: String,
    pub(crate) owner: String,
    pub(crate) group: String,
    pub(crate) modified_time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) symlink_target: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_symlink: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) metadata: BTreeMap<String, String>,
}

/// What happened in a directory.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(crate) struct Event {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) entry: Option<Entry>,
}

/// An event on a stream.
#[derive(Debug, serde::Serialize)]
pub(crate) struct EventEnvelope {
    pub(crate) filesystem: Event,
}

/// A file that was written by an upload; clients compare it whole.
#[derive(Debug, serde::Serialize)]
pub(crate) struct UploadedFile {
    pub(crate) path: String,
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) metadata: BTreeMap<String, String>,
}

/// What an upload answers.
pub(crate) type Uploads = Vec<UploadedFile>;
