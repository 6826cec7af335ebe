//! Snapshots, forks and trees on the wire.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{LimitsView, SandboxView};

/// A snapshot to take. Everything may be left out.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SnapshotRequest {
    /// What you call it. A name that was given before means the newest that has it.
    #[schema(example = "before-upgrade")]
    pub(crate) name: Option<String>,
    /// `memory` or `filesystem`; with memory when left out, if its class can.
    #[schema(example = "filesystem")]
    pub(crate) kind: Option<String>,
    /// It is removed so long from now; kept until you remove it when left out.
    #[schema(example = 86400)]
    pub(crate) expires_in_seconds: Option<u64>,
}

/// A snapshot.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Snapshot)]
pub(crate) struct SnapshotView {
    /// Its name for life.
    #[schema(example = "nk3v9m2x8c7p4q6w5z2n")]
    pub(crate) id: String,
    /// What you call it.
    #[schema(required = true, example = "before-upgrade")]
    pub(crate) name: Option<String>,
    /// Whose it is.
    #[schema(example = "default")]
    pub(crate) project: String,
    /// `memory`: what is made from it goes on. `filesystem`: it boots anew.
    #[schema(example = "memory")]
    pub(crate) kind: &'static str,
    /// What isolated its sandbox, and isolates what is made from it.
    #[schema(example = "gvisor")]
    pub(crate) isolation: &'static str,
    /// The sandbox it was taken of, which may be gone.
    #[schema(example = "sk3v9m2x8c7p4q6w5z2n")]
    pub(crate) sandbox: String,
    /// The snapshot that its sandbox had taken or come from before.
    #[schema(required = true)]
    pub(crate) parent: Option<String>,
    /// What its sandbox was first made from.
    #[schema(example = "base")]
    pub(crate) template: String,
    /// What its sandbox may use.
    pub(crate) limits: LimitsView,
    /// Bytes: what its sandbox had written, and its memory. Blocks are shared with it as long as it does not change them.
    pub(crate) bytes: u64,
    /// How long its sandbox stood still for it, in microseconds.
    pub(crate) stood_still_micros: u64,
    /// When it was asked for.
    #[schema(example = "2026-11-15T06:00:00.000Z")]
    pub(crate) created_at: String,
    /// When it is removed.
    #[schema(required = true)]
    pub(crate) expires_at: Option<String>,
}

/// A page of snapshots.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SnapshotPage)]
pub(crate) struct SnapshotPageView {
    /// Its snapshots, newest first.
    pub(crate) snapshots: Vec<SnapshotView>,
    /// Give this as `cursor` for the next page; `null` if this was the last.
    #[schema(required = true)]
    pub(crate) next_cursor: Option<String>,
}

/// Which snapshots to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct SnapshotQuery {
    /// Only those taken of this sandbox.
    pub(crate) sandbox: Option<String>,
    /// Only those with this name.
    #[param(example = "before-upgrade")]
    pub(crate) name: Option<String>,
    /// 1 to 1000; 100 when left out.
    #[param(minimum = 1, maximum = 1000, example = 100)]
    pub(crate) limit: Option<u32>,
    /// Where the page before ended.
    pub(crate) cursor: Option<String>,
}

/// Forks to make. What is left out they have from what they are made of.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForkRequest {
    /// How many: 1 to 100; one when left out.
    #[schema(example = 1, minimum = 1, maximum = 100)]
    pub(crate) count: Option<u32>,
    /// All or none. When false, each is made or fails by itself, and its entry says which.
    #[serde(default)]
    #[schema(example = false)]
    pub(crate) all_or_nothing: bool,
    /// Environment of processes that are started in them, over that of their origin.
    #[serde(default)]
    #[schema(example = json!({"BRANCH": "a"}))]
    pub(crate) env: BTreeMap<String, String>,
    /// Replaces all metadata.
    #[schema(example = json!({"owner": "ada"}))]
    pub(crate) metadata: Option<BTreeMap<String, String>>,
    /// How long each lives from now on; the server's default when left out.
    #[schema(example = 300)]
    pub(crate) lease_seconds: Option<u64>,
    /// How long nobody may use it before it ends.
    #[schema(example = 60)]
    pub(crate) idle_timeout_seconds: Option<u64>,
}

/// What came of one fork: one of the two is there.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Fork)]
pub(crate) struct ForkView {
    /// The sandbox.
    #[schema(required = true)]
    pub(crate) sandbox: Option<SandboxView>,
    /// Why it was not made.
    #[schema(required = true)]
    pub(crate) error: Option<ForkErrorView>,
}

/// Why one fork was not made.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ForkError)]
pub(crate) struct ForkErrorView {
    /// Stable, as in a problem.
    #[schema(example = "quota_exceeded")]
    pub(crate) code: &'static str,
    /// What happened and what to do.
    pub(crate) detail: String,
}

/// What came of all forks.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ForkList)]
pub(crate) struct ForkListView {
    /// As many as were asked for.
    pub(crate) forks: Vec<ForkView>,
}

/// Where to go back to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RollbackRequest {
    /// One of the sandbox's own snapshots, by its id or name.
    #[schema(example = "before-upgrade")]
    pub(crate) snapshot: String,
}

/// Whom a sandbox is a copy of.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Origin)]
pub(crate) struct OriginView {
    /// The sandbox, which may be gone.
    #[schema(example = "sk3v9m2x8c7p4q6w5z2n")]
    pub(crate) sandbox: String,
    /// The snapshot, if it was made from one that somebody kept.
    #[schema(required = true)]
    pub(crate) snapshot: Option<String>,
}

/// Everything that came from one sandbox. `origin` and `parent` say how it hangs together.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Tree)]
pub(crate) struct TreeView {
    /// The sandbox that all of it began with.
    #[schema(example = "sk3v9m2x8c7p4q6w5z2n")]
    pub(crate) root: String,
    /// Sandboxes, oldest first; ended ones too, as long as they are remembered.
    pub(crate) sandboxes: Vec<SandboxView>,
    /// Snapshots, oldest first.
    pub(crate) snapshots: Vec<SnapshotView>,
}
