//! Sandboxes on the wire.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{OriginView, VolumeMountBody};

/// Limits as asked for. What is left out is the server's default.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitsRequest {
    /// Thousandths of a core: 1500 is one and a half.
    #[schema(example = 1000)]
    pub(crate) cpu_millis: Option<u32>,
    /// Memory in bytes; there is no swap.
    #[schema(example = 536870912)]
    pub(crate) memory_bytes: Option<u64>,
    /// Bytes that may be added to the template on disk.
    #[schema(example = 2147483648_u64)]
    pub(crate) disk_bytes: Option<u64>,
    /// Processes and threads at one time.
    #[schema(example = 512)]
    pub(crate) pids: Option<u32>,
    /// Life in wall time, whatever happens.
    #[schema(example = 3600)]
    pub(crate) wall_time_seconds: Option<u64>,
}

/// A sandbox to make. Everything may be left out.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateRequest {
    /// From what; the server's default template when left out.
    #[schema(example = "base")]
    pub(crate) template: Option<String>,
    /// From this snapshot instead, by its id or name. Limits that are left out are then the snapshot's.
    #[schema(example = "before-upgrade")]
    pub(crate) snapshot: Option<String>,
    /// `auto`, `gvisor`, `container`, `microvm` or `wasm`. `auto` is the strongest that works here; another is that one or an error. The server's default,
    /// which is `auto` unless the operator chose another, when left out.
    #[schema(example = "auto")]
    pub(crate) isolation: Option<String>,
    /// What it may use.
    #[serde(default)]
    pub(crate) limits: LimitsRequest,
    /// `none`, or `open`: outgoing connections to public addresses. With a policy, `none` closes the network and all else is as the policy says.
    #[schema(example = "none")]
    pub(crate) network: Option<String>,
    /// What it may do: the name of a profile (`offline`, `packages`, `open`), or a policy document. It may only narrow what its project and its template may.
    #[schema(value_type = Option<Object>, example = json!({"version": 1, "network": {"default": "deny"}}))]
    pub(crate) policy: Option<serde_json::Value>,
    /// `root-allowed`, or `user-only`: nothing inside may become root.
    #[schema(example = "root-allowed")]
    pub(crate) privilege: Option<String>,
    /// Environment of every process. Values are never given back.
    #[serde(default)]
    #[schema(example = json!({"MODE": "test"}))]
    pub(crate) env: BTreeMap<String, String>,
    /// Your own words about it, to find it again.
    #[serde(default)]
    #[schema(example = json!({"owner": "ada"}))]
    pub(crate) metadata: BTreeMap<String, String>,
    /// How long it lives from now on.
    #[schema(example = 300)]
    pub(crate) lease_seconds: Option<u64>,
    /// How long nobody may use it before it ends.
    #[schema(example = 60)]
    pub(crate) idle_timeout_seconds: Option<u64>,
    /// `kill`, `pause` or `pause-files` (without its memory): what happens when its lease runs out or nobody uses it.
    #[schema(example = "kill")]
    pub(crate) on_timeout: Option<String>,
    /// Whether using it while it is paused resumes it.
    #[serde(default)]
    #[schema(example = false)]
    pub(crate) auto_resume: bool,
    /// Storage that outlives it: at most 16 volumes, each at a directory of its own.
    #[serde(default)]
    pub(crate) volumes: Vec<VolumeMountBody>,
    /// Its host name; its id when left out.
    #[schema(example = "worker")]
    pub(crate) hostname: Option<String>,
}

/// What to change. What is left out stays.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateRequest {
    /// Replaces all metadata.
    #[schema(example = json!({"owner": "ada"}))]
    pub(crate) metadata: Option<BTreeMap<String, String>>,
    /// Replaces the idle time-out; `null` removes it.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<u64>, example = 60)]
    pub(crate) idle_timeout_seconds: Option<Option<u64>>,
    /// It ends so long from now, sooner or later than before.
    #[schema(example = 300)]
    pub(crate) lease_seconds: Option<u64>,
    /// Replaces what it may do: the name of a profile or a policy document. Connections that are not allowed any more are cut.
    #[schema(value_type = Option<Object>, example = json!({"version": 1}))]
    pub(crate) policy: Option<serde_json::Value>,
}

/// Tells a field that is `null` from one that is not there.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<u64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// A new lease.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LeaseRequest {
    /// Seconds from now.
    #[schema(example = 300)]
    pub(crate) seconds: u64,
    /// Never shorten: if it already ends later, nothing changes.
    #[serde(default)]
    #[schema(example = false)]
    pub(crate) at_least: bool,
}

/// How to pause. Everything may be left out.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PauseRequest {
    /// `memory`: its processes go on when it is resumed, and where its class can, the host's memory is free meanwhile. `standby`: they stay in the host's
    /// memory and go on within milliseconds. `filesystem`: they end, and it boots anew on its files.
    #[schema(example = "memory")]
    pub(crate) keep: Option<String>,
}

/// How to resume. Everything may be left out.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResumeRequest {
    /// How long it lives from now on; what was left of its lease when left out.
    #[schema(example = 300)]
    pub(crate) lease_seconds: Option<u64>,
}

/// A sandbox's pause.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Pause)]
pub(crate) struct PauseView {
    /// Since when.
    #[schema(example = "2026-11-15T06:00:00.000Z")]
    pub(crate) since: String,
    /// Where its memory is: `on-disk`, `resident` in the host's memory, or `lost`: then it boots anew.
    #[schema(example = "on-disk")]
    pub(crate) memory: &'static str,
}

/// Limits as they are.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Limits)]
pub(crate) struct LimitsView {
    /// Thousandths of a core.
    #[schema(example = 1000)]
    pub(crate) cpu_millis: u32,
    /// Memory in bytes.
    #[schema(example = 536870912)]
    pub(crate) memory_bytes: u64,
    /// Bytes on disk, beyond the template.
    #[schema(example = 2147483648_u64)]
    pub(crate) disk_bytes: u64,
    /// Processes and threads.
    #[schema(example = 512)]
    pub(crate) pids: u32,
    /// Life in wall time.
    #[schema(required = true)]
    pub(crate) wall_time_seconds: Option<u64>,
}

/// How a sandbox ended.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SandboxEnd)]
pub(crate) struct EndView {
    /// `requested`, `lease-expired`, `idle`, `wall-time`, `out-of-memory`, `exited`, `not-made` or `lost`.
    #[schema(example = "requested")]
    pub(crate) cause: &'static str,
    /// More about it, for people.
    #[schema(example = "it was killed on request")]
    pub(crate) detail: String,
    /// When.
    #[schema(example = "2026-11-15T06:00:00.000Z")]
    pub(crate) at: String,
}

/// A sandbox.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Sandbox)]
pub(crate) struct SandboxView {
    /// Its name for life.
    #[schema(example = "sk3v9m2x8c7p4q6w5z2n")]
    pub(crate) id: String,
    /// Whose it is.
    #[schema(example = "default")]
    pub(crate) project: String,
    /// `creating`, `running`, `pausing`, `paused`, `resuming`, `stopping`, `stopped` or `failed`.
    #[schema(example = "running")]
    pub(crate) state: &'static str,
    /// What isolates it.
    #[schema(example = "gvisor")]
    pub(crate) isolation: &'static str,
    /// Why this class, for people.
    pub(crate) isolation_reason: String,
    /// What it was made from.
    #[schema(example = "base")]
    pub(crate) template: String,
    /// Which run of it this is.
    #[schema(example = "ek3v9m2x8c7p4q6w5z2n")]
    pub(crate) execution: String,
    /// What it may use.
    pub(crate) limits: LimitsView,
    /// `none`, `open`, or `filtered`: what its policy says.
    #[schema(example = "none")]
    pub(crate) network: &'static str,
    /// What it may do, after its project, its template and the request have narrowed each other.
    #[schema(value_type = Option<Object>, required = true)]
    pub(crate) policy: Option<serde_json::Value>,
    /// `root-allowed` or `user-only`.
    #[schema(example = "root-allowed")]
    pub(crate) privilege: &'static str,
    /// Names of its environment; the values stay inside.
    #[schema(example = json!(["MODE"]))]
    pub(crate) env: Vec<String>,
    /// Your own words about it.
    #[schema(example = json!({"owner": "ada"}))]
    pub(crate) metadata: BTreeMap<String, String>,
    /// Storage that outlives it.
    pub(crate) volumes: Vec<VolumeMountBody>,
    /// Its host name, if it is not its id.
    #[schema(required = true)]
    pub(crate) hostname: Option<String>,
    /// When it was asked for.
    #[schema(example = "2026-11-15T06:00:00.000Z")]
    pub(crate) created_at: String,
    /// When its agent first answered.
    #[schema(required = true)]
    pub(crate) started_at: Option<String>,
    /// When its lease runs out.
    #[schema(required = true)]
    pub(crate) expires_at: Option<String>,
    /// How long nobody may use it before it ends.
    #[schema(required = true)]
    pub(crate) idle_timeout_seconds: Option<u64>,
    /// `kill`, `pause` or `pause-files` (without its memory): what happens when its lease runs out or nobody uses it.
    #[schema(example = "kill")]
    pub(crate) on_timeout: &'static str,
    /// Whether using it while it is paused resumes it.
    pub(crate) auto_resume: bool,
    /// Its pause, while it stands still.
    #[schema(required = true)]
    pub(crate) pause: Option<PauseView>,
    /// Whom it is a copy of, if it is one.
    #[schema(required = true)]
    pub(crate) origin: Option<OriginView>,
    /// How it ended or is ending.
    #[schema(required = true)]
    pub(crate) end: Option<EndView>,
}

/// A page of sandboxes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SandboxPage {
    /// Its sandboxes.
    pub(crate) sandboxes: Vec<SandboxView>,
    /// Give this as `cursor` for the next page; `null` if this was the last.
    #[schema(required = true)]
    pub(crate) next_cursor: Option<String>,
}

/// Which sandboxes to list. Read by hand, because some may come more than once; this is for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it describes the query for the document only")]
pub(crate) struct ListQuery {
    /// Only these states; may come more than once, or with commas.
    #[param(example = "running")]
    state: Option<String>,
    /// Only those with this metadata, as `name:value`; may come more than once. `metadata.name=value` does the same.
    #[param(example = "owner:ada")]
    metadata: Option<String>,
    /// Only those made from this template.
    #[param(example = "base")]
    template: Option<String>,
    /// `newest` (default) or `oldest` first.
    #[param(example = "newest")]
    order: Option<String>,
    /// 1 to 1000; 100 when left out.
    #[param(minimum = 1, maximum = 1000, example = 100)]
    limit: Option<u32>,
    /// Where the page before ended.
    cursor: Option<String>,
}

/// What a sandbox used, as the host counts it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Usage)]
pub(crate) struct UsageView {
    /// CPU time in microseconds.
    pub(crate) cpu_micros: u64,
    /// Memory now, in bytes.
    pub(crate) memory_bytes: u64,
    /// Most memory so far, in bytes.
    pub(crate) memory_peak_bytes: u64,
    /// Bytes added to the template on disk; up to a minute late.
    pub(crate) disk_bytes: u64,
    /// Processes and threads now.
    pub(crate) pids: u32,
    /// How often the kernel killed a process for memory.
    pub(crate) oom_kills: u64,
}

/// What a sandbox looks like from inside. For people and dashboards: the sandbox could lie.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GuestMetrics)]
pub(crate) struct GuestMetricsView {
    /// Processors that can be used.
    pub(crate) cpus: u32,
    /// CPU time of all processes, in microseconds.
    pub(crate) cpu_micros: u64,
    /// Memory in all, in bytes.
    pub(crate) memory_total_bytes: u64,
    /// Memory in use, in bytes.
    pub(crate) memory_used_bytes: u64,
    /// Size of the root filesystem, in bytes.
    pub(crate) disk_total_bytes: u64,
    /// Of it in use, in bytes.
    pub(crate) disk_used_bytes: u64,
    /// Processes now.
    pub(crate) processes: u32,
}

/// A port that a program inside listens on.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Port)]
pub(crate) struct PortView {
    /// The port.
    #[schema(example = 8000)]
    pub(crate) port: u16,
    /// The address it is bound to.
    #[schema(example = "0.0.0.0")]
    pub(crate) address: String,
    /// Who listens, where it can be told.
    #[schema(required = true)]
    pub(crate) pid: Option<u32>,
}

/// The ports of a sandbox.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PortList {
    /// Those that programs listen on.
    pub(crate) ports: Vec<PortView>,
}

/// A token to be made.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PortTokenRequest {
    /// How long it is good for: 1 to 604800 seconds; 3600 when left out.
    #[schema(example = 3600, minimum = 1, maximum = 604800)]
    pub(crate) expires_in_seconds: Option<u64>,
}

/// Permission to reach one port.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PortToken)]
pub(crate) struct PortTokenView {
    /// Send it as the header `X-Belljar-Token`, or once as `?belljar_token=`.
    pub(crate) token: String,
    /// Until when.
    #[schema(example = "2026-11-15T07:00:00.000Z")]
    pub(crate) expires_at: String,
    /// The port's own host name, if the server has a domain.
    #[schema(required = true)]
    pub(crate) host: Option<String>,
}
