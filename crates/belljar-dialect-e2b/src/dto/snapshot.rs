//! Snapshots and forks of the control plane.

use super::SandboxDto;

/// `POST …/snapshots`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct NewSnapshot {
    pub(crate) name: Option<String>,
}

/// `GET /snapshots`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SnapshotQuery {
    #[serde(rename = "sandboxID")]
    pub(crate) sandbox_id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) limit: Option<u32>,
    pub(crate) next_token: Option<String>,
}

/// A snapshot.
#[derive(Debug, serde::Serialize)]
pub(crate) struct SnapshotDto {
    #[serde(rename = "snapshotID")]
    pub(crate) snapshot_id: String,
    pub(crate) names: Vec<String>,
}

/// `POST …/fork`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct NewFork {
    pub(crate) timeout: Option<u64>,
    pub(crate) count: Option<u32>,
}

/// What came of one fork.
#[derive(Debug, serde::Serialize)]
pub(crate) struct ForkDto {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sandbox: Option<SandboxDto>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<ForkErrorDto>,
}

/// Why one fork was not made.
#[derive(Debug, serde::Serialize)]
pub(crate) struct ForkErrorDto {
    pub(crate) code: u16,
    pub(crate) message: String,
}
