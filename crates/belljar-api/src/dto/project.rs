//! Projects and keys on the wire.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// How much a project may have at one time. What is left out is the default, or stays.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuotaRequest {
    /// Sandboxes.
    #[schema(example = 200)]
    pub(crate) sandboxes: Option<u32>,
    /// Sum of their CPU limits, in thousandths of a core.
    #[schema(example = 400000)]
    pub(crate) cpu_millis: Option<u64>,
    /// Sum of their memory limits, in bytes.
    pub(crate) memory_bytes: Option<u64>,
    /// Sum of their disk limits, in bytes.
    pub(crate) disk_bytes: Option<u64>,
}

/// How much a project may have at one time.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Quota)]
pub(crate) struct QuotaView {
    /// Sandboxes.
    pub(crate) sandboxes: u32,
    /// Sum of their CPU limits, in thousandths of a core.
    pub(crate) cpu_millis: u64,
    /// Sum of their memory limits, in bytes.
    pub(crate) memory_bytes: u64,
    /// Sum of their disk limits, in bytes.
    pub(crate) disk_bytes: u64,
}

/// A project to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProjectRequest {
    /// Its name: 1 to 40 of a-z, 0-9 and '-'.
    #[schema(example = "team-a")]
    pub(crate) id: String,
    /// How much it may have.
    pub(crate) quota: Option<QuotaRequest>,
}

/// What to change about a project.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProjectUpdate {
    /// How much it may have.
    pub(crate) quota: QuotaRequest,
}

/// A project.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Project)]
pub(crate) struct ProjectView {
    /// Its name.
    #[schema(example = "team-a")]
    pub(crate) id: String,
    /// How much it may have.
    pub(crate) quota: QuotaView,
    /// When it was made.
    #[schema(example = "2026-11-15T06:00:00.000Z")]
    pub(crate) created_at: String,
}

/// All projects.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProjectList {
    /// By name.
    pub(crate) projects: Vec<ProjectView>,
}

/// A key to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyRequest {
    /// For whom it acts.
    #[schema(example = "default")]
    pub(crate) project: String,
    /// What it may do: `read`, `use`, `templates`, `admin`.
    #[schema(example = json!(["read", "use"]))]
    pub(crate) scopes: Vec<String>,
    /// What people call it.
    #[serde(default)]
    #[schema(example = "ci")]
    pub(crate) label: String,
    /// How long it is good for; for ever when left out.
    #[schema(example = 86400)]
    pub(crate) expires_in_seconds: Option<u64>,
}

/// Whose keys.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct KeysQuery {
    /// Only this project's.
    #[param(example = "default")]
    pub(crate) project: Option<String>,
}

/// A key, without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Key)]
pub(crate) struct KeyView {
    /// Its public name.
    #[schema(example = "kk3v9m2x8c7p4q6w5z2n")]
    pub(crate) id: String,
    /// For whom it acts.
    #[schema(example = "default")]
    pub(crate) project: String,
    /// What it may do.
    #[schema(example = json!(["read", "use"]))]
    pub(crate) scopes: Vec<&'static str>,
    /// What people call it.
    #[schema(example = "ci")]
    pub(crate) label: String,
    /// When it was made.
    #[schema(example = "2026-11-15T06:00:00.000Z")]
    pub(crate) created_at: String,
    /// From when on it is refused.
    #[schema(required = true)]
    pub(crate) expires_at: Option<String>,
}

/// A key that was just made.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = NewKey)]
pub(crate) struct NewKeyView {
    /// What is kept of it.
    pub(crate) key: KeyView,
    /// The secret. It is shown this once and kept nowhere.
    #[schema(example = "bj_0123456789abcdef0123456789abcdef01234567")]
    pub(crate) secret: String,
}

/// Keys.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeyList {
    /// By project.
    pub(crate) keys: Vec<KeyView>,
}
