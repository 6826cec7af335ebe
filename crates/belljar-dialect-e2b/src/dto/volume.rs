//! Volumes of the control plane, and what is in them.

use serde::{Deserialize, Serialize};

/// `POST /volumes`.
#[derive(Debug, Deserialize)]
pub(crate) struct NewVolume {
    pub(crate) name: String,
}

/// What a list answers.
#[derive(Debug, Serialize)]
pub(crate) struct VolumeDto {
    #[serde(rename = "volumeID")]
    pub(crate) volume_id: String,
    pub(crate) name: String,
}

/// What create and get answer: the token opens the volume's content.
#[derive(Debug, Serialize)]
pub(crate) struct VolumeAndToken {
    #[serde(flatten)]
    pub(crate) volume: VolumeDto,
    pub(crate) token: String,
}

/// A volume in a sandbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct VolumeMountDto {
    pub(crate) name: String,
    pub(crate) path: String,
}

/// Query of every call about content; each reads what it knows.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ContentQuery {
    pub(crate) path: String,
    pub(crate) depth: Option<u32>,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) mode: Option<u32>,
    pub(crate) force: Option<bool>,
}

/// `PATCH …/path`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct EntryPatch {
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) mode: Option<u32>,
}

/// What is at a path.
#[derive(Debug, Serialize)]
pub(crate) struct EntryStat {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) path: String,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) atime: String,
    pub(crate) mtime: String,
    pub(crate) ctime: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
}
