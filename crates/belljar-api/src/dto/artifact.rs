//! Artifacts on the wire.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A file to keep.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeepRequest {
    /// Where it is in the sandbox; a relative path begins at the user's home.
    #[schema(example = "report.pdf")]
    pub(crate) path: String,
    /// Who reads it; the template's user when left out.
    #[schema(example = "user")]
    pub(crate) user: Option<String>,
    /// What to call it; as it is called there when left out.
    #[schema(example = "report.pdf")]
    pub(crate) name: Option<String>,
    /// What it is; as its first bytes look when left out.
    #[schema(example = "application/pdf")]
    pub(crate) media_type: Option<String>,
    /// It is removed so long from now; kept until you remove it when left out.
    #[schema(example = 86400)]
    pub(crate) expires_in_seconds: Option<u64>,
}

/// A file that was kept.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Artifact)]
pub(crate) struct ArtifactView {
    /// Its name for life.
    #[schema(example = "ak3v9m2x8c7p4q6w5z2n")]
    pub(crate) id: String,
    /// What it is called.
    #[schema(example = "report.pdf")]
    pub(crate) name: String,
    /// The sandbox it came from, which may be gone.
    #[schema(example = "sk3v9m2x8c7p4q6w5z2n")]
    pub(crate) sandbox: String,
    /// Where it was.
    #[schema(example = "/home/user/report.pdf")]
    pub(crate) path: String,
    /// Its size.
    pub(crate) bytes: u64,
    /// The SHA-256 of its content.
    pub(crate) sha256: String,
    /// What its first bytes look like.
    #[schema(example = "application/pdf")]
    pub(crate) media_type: String,
    /// When it was kept.
    #[schema(example = "2026-11-15T06:00:00.000Z")]
    pub(crate) created_at: String,
    /// When it is removed.
    #[schema(required = true)]
    pub(crate) expires_at: Option<String>,
}

/// A page of artifacts.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ArtifactPage)]
pub(crate) struct ArtifactPageView {
    /// Its artifacts, newest first.
    pub(crate) artifacts: Vec<ArtifactView>,
    /// Give this as `cursor` for the next page; `null` if this was the last.
    #[schema(required = true)]
    pub(crate) next_cursor: Option<String>,
}

/// Which artifacts to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArtifactQuery {
    /// Only those of this sandbox.
    pub(crate) sandbox: Option<String>,
    /// 1 to 1000; 100 when left out.
    #[param(minimum = 1, maximum = 1000, example = 100)]
    pub(crate) limit: Option<u32>,
    /// Where the page before ended.
    pub(crate) cursor: Option<String>,
}
