//! Usage and budgets on the wire.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Whose usage.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ConsumptionQuery {
    /// `project:NAME`, `key:ID` or `sandbox:ID`; the key's own project when left out.
    #[param(example = "project:default")]
    pub(crate) subject: Option<String>,
    /// Only sandboxes that were counted since this moment, RFC 3339.
    #[param(example = "2026-11-15T06:00:00Z")]
    pub(crate) since: Option<String>,
    /// `json` (default) or `csv`.
    #[param(example = "json")]
    pub(crate) format: Option<String>,
}

/// What was used.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = Consumption)]
pub(crate) struct ConsumptionView {
    /// Processor time, in microseconds.
    pub(crate) cpu_micros: u64,
    /// Time they ran, in milliseconds.
    pub(crate) wall_millis: u64,
    /// Memory they were promised, times that time: MiB × seconds.
    pub(crate) memory_mib_seconds: u64,
    /// The most they had written to disk, in bytes.
    pub(crate) disk_bytes: u64,
    /// Bytes that left them.
    pub(crate) egress_bytes: u64,
    /// Bytes that came in.
    pub(crate) ingress_bytes: u64,
    /// Processes started in them.
    pub(crate) executions: u64,
}

/// What one sandbox used.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MeterReading)]
pub(crate) struct MeterReadingView {
    /// The sandbox.
    pub(crate) sandbox: String,
    /// Its project.
    pub(crate) project: String,
    /// The key it was asked for with; unset for one from before this was written down.
    #[schema(required = true)]
    pub(crate) key: Option<String>,
    /// When it was counted last.
    pub(crate) read_at: String,
    /// What it used since its making.
    pub(crate) used: ConsumptionView,
    /// What that costs, where the server has prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "0.012500000")]
    pub(crate) cost: Option<String>,
}

/// What somebody's sandboxes used.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConsumptionList {
    /// Each of them.
    pub(crate) sandboxes: Vec<MeterReadingView>,
    /// All together.
    pub(crate) total: ConsumptionView,
    /// What all cost together, where the server has prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "0.012500000")]
    pub(crate) cost: Option<String>,
    /// The unit of money.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "EUR")]
    pub(crate) currency: Option<String>,
}

/// A budget to set.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"subject": "project:default", "meter": "cpu_micros", "hard": 3600000000_u64}))]
pub(crate) struct BudgetRequest {
    /// `project:NAME`, `key:ID` or `sandbox:ID`.
    pub(crate) subject: String,
    /// `cpu_micros`, `wall_millis`, `memory_mib_seconds`, `disk_bytes`, `egress_bytes`, `ingress_bytes` or `executions`.
    pub(crate) meter: String,
    /// From here on it is told.
    pub(crate) soft: Option<u64>,
    /// Here it ends.
    pub(crate) hard: Option<u64>,
    /// How: `pause` (default) or `kill`.
    pub(crate) at_limit: Option<String>,
}

/// Which budget.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct BudgetQuery {
    /// Whose.
    #[param(example = "project:default")]
    pub(crate) subject: String,
    /// Of what.
    #[param(example = "cpu_micros")]
    pub(crate) meter: String,
}

/// A budget.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Budget)]
pub(crate) struct BudgetView {
    /// Whose.
    #[schema(example = "project:default")]
    pub(crate) subject: String,
    /// Of what.
    #[schema(example = "cpu_micros")]
    pub(crate) meter: &'static str,
    /// From here on it is told.
    #[schema(required = true)]
    pub(crate) soft: Option<u64>,
    /// Here it ends.
    #[schema(required = true)]
    pub(crate) hard: Option<u64>,
    /// How: `pause` or `kill`.
    #[schema(example = "pause")]
    pub(crate) at_limit: &'static str,
    /// When the soft limit was told of. It is once; setting the budget again begins anew.
    #[schema(required = true)]
    pub(crate) warned_at: Option<String>,
    /// How much is used.
    pub(crate) used: u64,
}

/// Budgets.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BudgetList {
    /// By subject.
    pub(crate) budgets: Vec<BudgetView>,
}
