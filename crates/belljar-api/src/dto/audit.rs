//! The audit log on the wire. Events are given as they stand in the log; `docs/guides/audit.md` lists what is in them.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Which events.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQueryParams {
    /// Whose log; the key's own project when left out. Another one is for administrators.
    #[param(example = "default")]
    pub(crate) project: Option<String>,
    /// Those after this number; 0 when left out.
    #[param(example = 0)]
    pub(crate) after: Option<u64>,
    /// Instead of `after`: this many before the end, 0 to 1000.
    #[param(example = 20, minimum = 0, maximum = 1000)]
    pub(crate) last: Option<u32>,
    /// Only of this sandbox.
    #[param(example = "sk3v9m2x8c7p4q6w5z2n")]
    pub(crate) sandbox: Option<String>,
    /// Only of these kinds, with commas between: `lifecycle`, `exec_started`, `exec_ended`, `file`, `port`, `network`, `secret_use`, `policy`, `access`,
    /// `template`, `artifact`, `budget`, `log`.
    #[param(example = "lifecycle,exec_started")]
    pub(crate) kinds: Option<String>,
    /// Not before this moment, RFC 3339.
    #[param(example = "2026-11-15T06:00:00Z")]
    pub(crate) since: Option<String>,
    /// Before this moment, RFC 3339.
    #[param(example = "2036-11-15T06:00:00Z")]
    pub(crate) until: Option<String>,
    /// At most this many, 1 to 1000; 100 when left out.
    #[param(example = 100, minimum = 1, maximum = 1000)]
    pub(crate) limit: Option<u32>,
    /// If there is none, wait for one, 0 to 60 seconds; 0 when left out.
    #[param(example = 0, minimum = 0, maximum = 60)]
    pub(crate) wait_seconds: Option<u32>,
}

/// Whose log.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditProjectParams {
    /// Whose log; the key's own project when left out. Another one is for administrators.
    #[param(example = "default")]
    pub(crate) project: Option<String>,
}

/// Some events.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditList {
    /// Oldest first.
    #[schema(value_type = Vec<Object>)]
    pub(crate) events: Vec<serde_json::Value>,
    /// Everything up to this number was looked at: give it as `after` to go on.
    pub(crate) next_after: u64,
    /// Whether there is more already.
    pub(crate) more: bool,
}

/// The server's signed word on where a log ended.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = AuditCheckpoint)]
pub(crate) struct CheckpointView {
    /// Whose log.
    #[schema(example = "default")]
    pub(crate) project: String,
    /// The number of the last event; 0 for none.
    pub(crate) seq: u64,
    /// SHA-256 of its line, in hexadecimal.
    pub(crate) hash: String,
    /// When it was signed, in milliseconds since 1970.
    pub(crate) at: u64,
    /// The server's Ed25519 key, in hexadecimal.
    pub(crate) public_key: String,
    /// Its signature, in hexadecimal.
    pub(crate) signature: String,
}

/// Whether a log is as it was written.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditVerdict)]
pub(crate) struct AuditVerdictView {
    /// Whether it is.
    pub(crate) whole: bool,
    /// How many events are there.
    pub(crate) events: u64,
    /// What is wrong, in the order of the log.
    pub(crate) faults: Vec<String>,
    /// The last signed word about it.
    #[schema(required = true)]
    pub(crate) checkpoint: Option<CheckpointView>,
}
