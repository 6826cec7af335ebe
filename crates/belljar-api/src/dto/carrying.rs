//! Snapshots that are carried to other servers, on the wire.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// How to keep a snapshot that comes in.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct ImportQuery {
    /// What to call it; as it was called when left out.
    #[param(example = "before-upgrade")]
    pub(crate) name: Option<String>,
    /// It is removed so long from now; kept until you remove it when left out.
    #[param(example = 86400)]
    pub(crate) expires_in_seconds: Option<u64>,
}

/// A snapshot to pull.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PullRequest {
    /// The name or id it was pushed under.
    #[schema(example = "before-upgrade")]
    pub(crate) name: String,
    /// What to call it here; as it was called when left out.
    #[schema(example = "from-the-other-server")]
    pub(crate) rename: Option<String>,
    /// It is removed so long from now; kept until you remove it when left out.
    #[schema(example = 86400)]
    pub(crate) expires_in_seconds: Option<u64>,
}

/// A snapshot that can be pulled.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PushedSnapshot)]
pub(crate) struct PushedView {
    /// What to pull it as.
    #[schema(example = "before-upgrade")]
    pub(crate) name: String,
    /// Which snapshot it was.
    #[schema(example = "nk3v9m2x8c7p4q6w5z2n")]
    pub(crate) snapshot: String,
    /// `memory` or `filesystem`.
    #[schema(example = "memory")]
    pub(crate) kind: &'static str,
    /// Bytes that were sent.
    pub(crate) bytes: u64,
    /// Their SHA-256.
    pub(crate) sha256: String,
}
