//! Sandboxes of the control plane.

use std::collections::BTreeMap;

use super::VolumeMountDto;

/// `POST /sandboxes` and `POST /v2/sandboxes`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct NewSandbox {
    #[serde(rename = "templateID")]
    pub(crate) template_id: String,
    pub(crate) timeout: Option<u64>,
    #[serde(rename = "autoPause")]
    pub(crate) auto_pause: Option<bool>,
    #[serde(rename = "autoPauseMemory")]
    pub(crate) auto_pause_memory: Option<bool>,
    #[serde(rename = "autoResume")]
    pub(crate) auto_resume: Option<AutoResume>,
    pub(crate) secure: Option<bool>,
    pub(crate) allow_internet_access: Option<bool>,
    pub(crate) network: Option<NetworkDto>,
    pub(crate) metadata: Option<BTreeMap<String, String>>,
    #[serde(rename = "envVars")]
    pub(crate) env_vars: Option<BTreeMap<String, String>>,
    pub(crate) iam: Option<serde_json::Value>,
    #[serde(rename = "volumeMounts")]
    pub(crate) volume_mounts: Option<Vec<VolumeMountDto>>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct AutoResume {
    pub(crate) enabled: bool,
}

/// What may go in and out.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct NetworkDto {
    pub(crate) allow_out: Option<Vec<String>>,
    pub(crate) deny_out: Option<Vec<String>>,
    pub(crate) allow_public_traffic: Option<bool>,
    pub(crate) mask_request_host: Option<String>,
    pub(crate) egress_proxy: Option<serde_json::Value>,
    pub(crate) rules: Option<BTreeMap<String, Vec<NetworkRule>>>,
    /// Only in `PUT …/network`.
    #[serde(rename = "allow_internet_access")]
    pub(crate) allow_internet_access: Option<bool>,
}

/// What is done to requests to one host.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct NetworkRule {
    pub(crate) transform: Option<Transform>,
}

/// Headers that are put in.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Transform {
    pub(crate) headers: BTreeMap<String, String>,
}

/// `POST …/connect` and `…/resume`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Connect {
    pub(crate) timeout: Option<u64>,
}

/// `POST …/pause`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Pause {
    pub(crate) memory: Option<bool>,
}

/// `POST …/timeout`.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Timeout {
    pub(crate) timeout: u64,
}

/// `POST …/refreshes`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Refresh {
    pub(crate) duration: Option<u64>,
}

/// `GET /sandboxes` and `GET /v2/sandboxes`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ListQuery {
    pub(crate) metadata: Option<String>,
    pub(crate) state: Option<String>,
    pub(crate) order: Option<String>,
    pub(crate) started_after: Option<String>,
    pub(crate) template: Option<String>,
    pub(crate) limit: Option<u32>,
    pub(crate) next_token: Option<String>,
}

/// `GET …/metrics`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct MetricsQuery {
    pub(crate) start: Option<i64>,
    pub(crate) end: Option<i64>,
}

/// What create and connect answer.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SandboxDto {
    #[serde(rename = "templateID")]
    pub(crate) template_id: String,
    #[serde(rename = "sandboxID")]
    pub(crate) sandbox_id: String,
    pub(crate) alias: String,
    #[serde(rename = "clientID")]
    pub(crate) client_id: &'static str,
    pub(crate) envd_version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) envd_access_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) traffic_access_token: Option<String>,
    pub(crate) domain: Option<String>,
}

/// What get and list answer.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SandboxDetail {
    #[serde(flatten)]
    pub(crate) sandbox: SandboxDto,
    pub(crate) started_at: String,
    pub(crate) end_at: String,
    pub(crate) cpu_count: u32,
    #[serde(rename = "memoryMB")]
    pub(crate) memory_mb: u64,
    #[serde(rename = "diskSizeMB")]
    pub(crate) disk_size_mb: u64,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) state: &'static str,
    pub(crate) allow_internet_access: bool,
    pub(crate) network: serde_json::Value,
    pub(crate) lifecycle: serde_json::Value,
    pub(crate) volume_mounts: Vec<VolumeMountDto>,
}

/// One measurement.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metric {
    pub(crate) timestamp: String,
    pub(crate) timestamp_unix: i64,
    pub(crate) cpu_count: u32,
    pub(crate) cpu_used_pct: f64,
    pub(crate) mem_used: u64,
    pub(crate) mem_total: u64,
    pub(crate) mem_cache: u64,
    pub(crate) disk_used: u64,
    pub(crate) disk_total: u64,
}
