//! Sandboxes of the control plane.

use std::collections::BTreeMap;

/// `POST /sandbox`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct NewSandbox {
    pub(crate) name: Option<String>,
    pub(crate) snapshot: Option<String>,
    pub(crate) user: Option<String>,
    pub(crate) env: Option<BTreeMap<String, String>>,
    pub(crate) labels: Option<BTreeMap<String, String>>,
    pub(crate) public: Option<bool>,
    pub(crate) network_block_all: Option<bool>,
    pub(crate) network_allow_list: Option<String>,
    pub(crate) domain_allow_list: Option<String>,
    pub(crate) outbound_proxy_url: Option<String>,
    pub(crate) otel_endpoint_override: Option<String>,
    pub(crate) target: Option<String>,
    pub(crate) cpu: Option<u32>,
    pub(crate) gpu: Option<u32>,
    pub(crate) kvm: Option<bool>,
    /// GiB.
    pub(crate) memory: Option<u64>,
    /// GiB.
    pub(crate) disk: Option<u64>,
    /// Minutes, as all intervals here.
    pub(crate) auto_stop_interval: Option<u64>,
    pub(crate) auto_pause_interval: Option<u64>,
    pub(crate) auto_archive_interval: Option<u64>,
    pub(crate) auto_delete_interval: Option<i64>,
    pub(crate) ttl_minutes: Option<u64>,
    pub(crate) volumes: Option<Vec<NewVolumeMount>>,
    pub(crate) build_info: Option<serde_json::Value>,
    pub(crate) linked_sandbox: Option<String>,
    pub(crate) secrets: Option<Vec<serde_json::Value>>,
}

/// A volume of a new sandbox.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewVolumeMount {
    pub(crate) volume_id: String,
    pub(crate) mount_path: String,
    #[serde(default)]
    pub(crate) subpath: Option<String>,
}

/// A sandbox as clients know it.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SandboxDto {
    pub(crate) id: String,
    pub(crate) organization_id: String,
    pub(crate) name: String,
    pub(crate) snapshot: String,
    pub(crate) user: String,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) public: bool,
    pub(crate) network_block_all: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) network_allow_list: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) domain_allow_list: Option<String>,
    pub(crate) target: String,
    pub(crate) cpu: u32,
    pub(crate) gpu: u32,
    pub(crate) kvm: bool,
    pub(crate) memory: u64,
    pub(crate) disk: u64,
    pub(crate) state: &'static str,
    pub(crate) desired_state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error_reason: Option<String>,
    pub(crate) auto_stop_interval: u64,
    pub(crate) auto_pause_interval: u64,
    pub(crate) auto_archive_interval: u64,
    pub(crate) auto_delete_interval: i64,
    pub(crate) volumes: Vec<serde_json::Value>,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
    pub(crate) last_activity_at: String,
    pub(crate) sandbox_class: &'static str,
    pub(crate) daemon_version: &'static str,
    pub(crate) toolbox_proxy_url: String,
}

/// `POST /sandbox/{id}/network-settings`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct NetworkSettings {
    pub(crate) network_block_all: Option<bool>,
    pub(crate) network_allow_list: Option<String>,
    pub(crate) domain_allow_list: Option<String>,
}

/// `GET /sandbox`, taken apart by hand: a filter may come several times.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ListQuery {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) cursor: Option<String>,
    pub(crate) limit: Option<u32>,
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) states: Vec<String>,
    pub(crate) snapshots: Vec<String>,
    pub(crate) oldest_first: bool,
}

/// `GET /sandbox/paginated`, of older clients.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct OldListQuery {
    pub(crate) page: Option<u32>,
    pub(crate) limit: Option<u32>,
    pub(crate) labels: Option<String>,
}
