//! Volumes on the wire.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A volume to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct VolumeRequest {
    /// What you call it: 1 to 63 of A-Z, a-z, 0-9, `-` and `_`. No two of a project are called the same.
    #[schema(example = "data")]
    pub(crate) name: String,
    /// What may be written to it, in bytes; 1 GiB when left out.
    #[schema(example = 1073741824_u64)]
    pub(crate) size_bytes: Option<u64>,
    /// Instead of a volume of its own, a bucket that the operator set up for this project, by its name in the server's configuration.
    #[schema(example = json!(null))]
    pub(crate) bucket: Option<String>,
}

/// A copy of a volume to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CloneVolumeRequest {
    /// What you call it.
    #[schema(example = "data-before")]
    pub(crate) name: String,
    /// What may be written to it beyond what it shares with its origin; as much as to that when left out.
    #[schema(example = 1073741824_u64)]
    pub(crate) size_bytes: Option<u64>,
    /// Keep this state for ever: it can only be mounted read-only.
    #[serde(default)]
    #[schema(example = false)]
    pub(crate) read_only: bool,
}

/// A volume.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Volume)]
pub(crate) struct VolumeView {
    /// Its name for life.
    #[schema(example = "vk3v9m2x8c7p4q6w5z2n")]
    pub(crate) id: String,
    /// What you call it.
    #[schema(example = "data")]
    pub(crate) name: String,
    /// Whose it is.
    #[schema(example = "default")]
    pub(crate) project: String,
    /// What may be written to it, in bytes.
    pub(crate) size_bytes: u64,
    /// Whether it never changes again.
    pub(crate) read_only: bool,
    /// The volume it is a copy of, which may be gone.
    #[schema(required = true)]
    pub(crate) origin: Option<String>,
    /// The bucket that it is, if it is one.
    #[schema(required = true)]
    pub(crate) bucket: Option<String>,
    /// When it was asked for.
    #[schema(example = "2026-11-15T06:00:00.000Z")]
    pub(crate) created_at: String,
}

/// A volume, what was written to it, and who has it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = VolumeStatus)]
pub(crate) struct VolumeStatusView {
    #[serde(flatten)]
    pub(crate) volume: VolumeView,
    /// Bytes that were written to it; what a copy shares with its origin counts there.
    pub(crate) used_bytes: u64,
    /// The sandboxes that have it, running or paused; at most 100.
    pub(crate) mounted_by: Vec<HolderView>,
}

/// A sandbox that has a volume.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = VolumeHolder)]
pub(crate) struct HolderView {
    /// Which.
    #[schema(example = "sk3v9m2x8c7p4q6w5z2n")]
    pub(crate) sandbox: String,
    /// `read-write`, `read-only` or `shared`.
    #[schema(example = "read-write")]
    pub(crate) mode: &'static str,
}

/// A page of volumes.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = VolumePage)]
pub(crate) struct VolumePageView {
    /// Its volumes, by name.
    pub(crate) volumes: Vec<VolumeView>,
    /// Give this as `cursor` for the next page; `null` if this was the last.
    #[schema(required = true)]
    pub(crate) next_cursor: Option<String>,
}

/// Which page.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct VolumeQuery {
    /// 1 to 1000; 100 when left out.
    #[param(minimum = 1, maximum = 1000, example = 100)]
    pub(crate) limit: Option<u32>,
    /// Where the page before ended.
    pub(crate) cursor: Option<String>,
}

/// A volume in a sandbox.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct VolumeMountBody {
    /// Which, by its id or name.
    #[schema(example = "data")]
    pub(crate) volume: String,
    /// The directory it is seen at: absolute, made if it is not there.
    #[schema(example = "/data")]
    pub(crate) path: String,
    /// `read-write` (default): this sandbox has it alone. `read-only`: beside others. `shared`: it writes beside others that said the same.
    #[serde(default = "read_write")]
    #[schema(example = "read-write")]
    pub(crate) mode: String,
}

fn read_write() -> String {
    belljar_types::MountMode::ReadWrite.to_string()
}

/// Which path of a volume.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct VolumePathQuery {
    /// The path, from the volume's root.
    #[param(example = "/reports/today.txt")]
    pub(crate) path: String,
}

/// How to write a file of a volume.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct VolumeWriteQuery {
    /// The path, from the volume's root.
    #[param(example = "/reports/today.txt")]
    pub(crate) path: String,
    /// Permissions in octal; those of a file that is replaced, or 0644, when left out.
    #[param(example = "0644")]
    pub(crate) mode: Option<String>,
    /// The owner's number; that of a file that is replaced, or 1000, when left out.
    #[param(example = 1000, maximum = 65535)]
    pub(crate) uid: Option<u32>,
    /// The group's number.
    #[param(example = 1000, maximum = 65535)]
    pub(crate) gid: Option<u32>,
    /// Make missing parent directories.
    #[serde(default)]
    #[param(example = true)]
    pub(crate) parents: bool,
}

/// Which directory of a volume, and how deep.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct VolumeListQuery {
    /// The directory; the volume's root when left out.
    #[serde(default)]
    #[param(example = "/")]
    pub(crate) path: String,
    /// 1 (default) is its own entries, 2 those of its directories too, and so on up to 64.
    #[param(minimum = 1, maximum = 64, example = 1)]
    pub(crate) depth: Option<u32>,
    /// Stop after this many: 1 to 100000; 10000 when left out.
    #[param(minimum = 1, maximum = 100000, example = 1000)]
    pub(crate) max_entries: Option<u32>,
}

/// A directory to make in a volume, or new permissions or owner of something.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct VolumeEntryRequest {
    /// The path, from the volume's root.
    #[schema(example = "/reports")]
    pub(crate) path: String,
    /// Permissions in octal.
    #[schema(example = "0755")]
    pub(crate) mode: Option<String>,
    /// The owner's number.
    #[schema(example = 1000, maximum = 65535)]
    pub(crate) uid: Option<u32>,
    /// The group's number.
    #[schema(example = 1000, maximum = 65535)]
    pub(crate) gid: Option<u32>,
}

/// A move within a volume; a file at the new place is replaced.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct VolumeMoveRequest {
    /// From where.
    #[schema(example = "/reports/today.txt")]
    pub(crate) from: String,
    /// To where.
    #[schema(example = "/reports/yesterday.txt")]
    pub(crate) to: String,
}
