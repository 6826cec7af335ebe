//! [`MeteringStore`]: what was counted of sandboxes, and how much of it somebody may have. Part of [`crate::Store`] and held to the same.
//!
//! Readings are written as they are, not added up: writing one twice is writing it once, and what a project or a key used is the sum of the
//! readings of its sandboxes.

use async_trait::async_trait;
use belljar_types::{Budget, BudgetSubject, Consumption, Epoch, Message, Meter, MeterReading, SandboxId, Timestamp};

use crate::store::StoreError;

/// What must be remembered of usage and budgets.
#[async_trait]
pub trait MeteringStore: Send + Sync {
    /// Writes what was counted of a sandbox, in place of what was written before.
    async fn write_meter_reading(&self, epoch: Epoch, reading: &MeterReading) -> Result<(), StoreError>;

    /// What was counted of a sandbox.
    async fn meter_reading(&self, sandbox: &SandboxId) -> Result<Option<MeterReading>, StoreError>;

    /// What was counted of the sandboxes of somebody, of those that were read since then, oldest first.
    async fn meter_readings(&self, subject: &BudgetSubject, since: Timestamp) -> Result<Vec<MeterReading>, StoreError>;

    /// Everything that the sandboxes of somebody used: the sum of their readings.
    async fn consumed(&self, subject: &BudgetSubject) -> Result<Consumption, StoreError>;

    /// Sets a budget, in place of the one of the same subject and meter. Nobody was warned of it yet.
    async fn set_budget(&self, budget: &Budget) -> Result<(), StoreError>;

    /// Removes a budget. Says whether there was one.
    async fn remove_budget(&self, subject: &BudgetSubject, meter: Meter) -> Result<bool, StoreError>;

    /// All budgets.
    async fn budgets(&self) -> Result<Vec<Budget>, StoreError>;

    /// Notes that a budget's soft limit was reached, and enters what is to be told of it. `false`, and nothing entered, if that was noted before.
    async fn warn_of_budget(&self, epoch: Epoch, budget: &Budget, at: Timestamp, message: &Message) -> Result<bool, StoreError>;
}
