//! Usage and budgets: what was used, and how much may be.

use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::error::ClientError;

/// What was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consumed {
    /// Processor time, in microseconds.
    pub cpu_micros: u64,
    /// Time they ran, in milliseconds.
    pub wall_millis: u64,
    /// Memory they were promised, times that time: MiB × seconds.
    pub memory_mib_seconds: u64,
    /// The most they had written to disk, in bytes.
    pub disk_bytes: u64,
    /// Bytes that left them.
    pub egress_bytes: u64,
    /// Bytes that came in.
    pub ingress_bytes: u64,
    /// Processes started in them.
    pub executions: u64,
}

/// What one sandbox used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumedBySandbox {
    /// The sandbox.
    pub sandbox: String,
    /// Its project.
    pub project: String,
    /// The key it was asked for with, if that was written down.
    pub key: Option<String>,
    /// When it was counted last, RFC 3339.
    pub read_at: String,
    /// What it used.
    pub used: Consumed,
    /// What that costs, where the server has prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
}

/// What somebody's sandboxes used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumedByAll {
    /// Each of them.
    pub sandboxes: Vec<ConsumedBySandbox>,
    /// All together.
    pub total: Consumed,
    /// What all cost together, where the server has prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    /// The unit of money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
}

/// A budget to set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewBudget {
    /// `project:NAME`, `key:ID` or `sandbox:ID`.
    pub subject: String,
    /// Of what.
    pub meter: String,
    /// From here on it is told.
    pub soft: Option<u64>,
    /// Here it ends.
    pub hard: Option<u64>,
    /// How: `pause` or `kill`.
    pub at_limit: String,
}

/// A budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetOf {
    /// Whose.
    pub subject: String,
    /// Of what.
    pub meter: String,
    /// From here on it is told.
    pub soft: Option<u64>,
    /// Here it ends.
    pub hard: Option<u64>,
    /// How.
    pub at_limit: String,
    /// When the soft limit was told of, RFC 3339.
    #[serde(default)]
    pub warned_at: Option<String>,
    /// How much is used.
    pub used: u64,
}

#[derive(Deserialize)]
struct BudgetList {
    budgets: Vec<BudgetOf>,
}

impl Client {
    /// What somebody's sandboxes used.
    pub async fn consumed(&self, subject: Option<&str>, since: Option<&str>) -> Result<ConsumedByAll, ClientError> {
        let query: Vec<(&str, &str)> =
            [("subject", subject), ("since", since)].into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        self.ask(Method::GET, ["v1", "usage"]).query(&query).fetch().await
    }

    /// Budgets.
    pub async fn budgets(&self) -> Result<Vec<BudgetOf>, ClientError> {
        let list: BudgetList = self.ask(Method::GET, ["v1", "budgets"]).fetch().await?;
        Ok(list.budgets)
    }

    /// Sets a budget.
    pub async fn set_budget(&self, budget: &NewBudget) -> Result<BudgetOf, ClientError> {
        self.ask(Method::PUT, ["v1", "budgets"]).json(budget).fetch().await
    }

    /// Removes a budget.
    pub async fn remove_budget(&self, subject: &str, meter: &str) -> Result<(), ClientError> {
        self.ask(Method::DELETE, ["v1", "budgets"]).query(&[("subject", subject), ("meter", meter)]).done().await
    }
}
