//! Volumes: make, find, copy, remove; and their content without a sandbox.

use reqwest::{Body, Method};
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::error::ClientError;
use crate::files::{Download, FileEntry, FileList};

/// A volume to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewVolume {
    /// What people call it.
    pub name: String,
    /// The bucket that it is to be, by the operator's name for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// What may be written to it, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
}

/// A copy of a volume to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewClone {
    /// What people call it.
    pub name: String,
    /// What may be written to it, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Whether it keeps this state for ever.
    pub read_only: bool,
}

/// A volume in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeMount {
    /// Which, by its id or name.
    pub volume: String,
    /// Where it is seen.
    pub path: String,
    /// `read-write`, `read-only` or `shared`.
    pub mode: String,
}

/// A sandbox that has a volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeHolder {
    /// Which.
    pub sandbox: String,
    /// How it uses it.
    pub mode: String,
}

/// A volume as the server tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeView {
    /// Its name for life.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Whose it is.
    pub project: String,
    /// What may be written to it.
    pub size_bytes: u64,
    /// Whether it never changes.
    pub read_only: bool,
    /// The volume it is a copy of.
    pub origin: Option<String>,
    /// When it was asked for, RFC 3339.
    pub created_at: String,
    /// What was written to it, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
    /// Who has it, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mounted_by: Option<Vec<VolumeHolder>>,
}

/// A page of volumes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumePage {
    /// Its volumes.
    pub volumes: Vec<VolumeView>,
    /// Where the next page begins; none if this was the last.
    pub next_cursor: Option<String>,
}

impl Client {
    /// Makes an empty volume.
    pub async fn create_volume(&self, request: &NewVolume) -> Result<VolumeView, ClientError> {
        self.ask(Method::POST, ["v1", "volumes"]).json(request).fetch().await
    }

    /// One page of the project's volumes.
    pub async fn volumes(&self, cursor: Option<&str>) -> Result<VolumePage, ClientError> {
        let asking = self.ask(Method::GET, ["v1", "volumes"]).query(&[("limit", "1000")]);
        let asking = if let Some(cursor) = cursor { asking.query(&[("cursor", cursor)]) } else { asking };
        asking.fetch().await
    }

    /// One volume, by its id or name, with what was written to it and who has it.
    pub async fn volume(&self, which: &str) -> Result<VolumeView, ClientError> {
        self.ask(Method::GET, ["v1", "volumes", which]).fetch().await
    }

    /// Removes a volume with all it holds.
    pub async fn remove_volume(&self, which: &str) -> Result<(), ClientError> {
        self.ask(Method::DELETE, ["v1", "volumes", which]).done().await
    }

    /// Makes a volume that holds what another holds now.
    pub async fn clone_volume(&self, which: &str, request: &NewClone) -> Result<VolumeView, ClientError> {
        self.ask(Method::POST, ["v1", "volumes", which, "clones"]).json(request).fetch().await
    }

    /// Reads a file of a volume.
    pub async fn read_volume_file(&self, volume: &str, path: &str) -> Result<Download, ClientError> {
        let answer = self.ask(Method::GET, ["v1", "volumes", volume, "files"]).query(&[("path", path)]).send().await?;
        Ok(Download::of(answer))
    }

    /// Writes a file of a volume, and the directories above it.
    pub async fn write_volume_file(
        &self,
        volume: &str,
        path: &str,
        mode: Option<u32>,
        content: impl Into<Body>,
    ) -> Result<FileEntry, ClientError> {
        let asking = self.ask(Method::PUT, ["v1", "volumes", volume, "files"]).query(&[("path", path), ("parents", "true")]);
        let mode = mode.map(|mode| format!("{mode:04o}"));
        let asking = if let Some(mode) = &mode { asking.query(&[("mode", mode)]) } else { asking };
        asking.bytes(content).fetch().await
    }

    /// What is at a path of a volume.
    pub async fn volume_entry(&self, volume: &str, path: &str) -> Result<FileEntry, ClientError> {
        self.ask(Method::GET, ["v1", "volumes", volume, "files", "stat"]).query(&[("path", path)]).fetch().await
    }

    /// What a directory of a volume holds, itself only.
    pub async fn volume_entries(&self, volume: &str, path: &str) -> Result<Vec<FileEntry>, ClientError> {
        let asking = self.ask(Method::GET, ["v1", "volumes", volume, "files", "list"]);
        let list: FileList = asking.query(&[("path", path), ("max_entries", "100000")]).fetch().await?;
        Ok(list.entries)
    }

    /// Removes something in a volume.
    pub async fn remove_volume_entry(&self, volume: &str, path: &str) -> Result<(), ClientError> {
        self.ask(Method::DELETE, ["v1", "volumes", volume, "files"]).query(&[("path", path)]).done().await
    }
}
