//! [`WebhookStore`]: who is told, and what still has to be. Part of [`crate::Store`] and held to the same.
//!
//! A message is entered in the transaction of what it tells of, once for each receiver that wants it, and goes when its receiver has it: what
//! happened is told, and what is told happened, whenever the server dies.

use async_trait::async_trait;
use belljar_types::{Delivery, Epoch, ExecutionId, Message, ProjectId, Sandbox, SandboxState, Timestamp, Webhook, WebhookId};

use crate::store::StoreError;

/// What must be remembered of webhooks.
#[async_trait]
pub trait WebhookStore: Send + Sync {
    /// Enters a webhook.
    async fn add_webhook(&self, webhook: &Webhook) -> Result<(), StoreError>;

    /// The webhooks of a project, oldest first.
    async fn webhooks(&self, project: &ProjectId) -> Result<Vec<Webhook>, StoreError>;

    /// Removes a webhook with what still waits for it. Says whether there was one.
    async fn remove_webhook(&self, project: &ProjectId, id: &WebhookId) -> Result<bool, StoreError>;

    /// Does what [`crate::Store::record`] does, and enters what is to be told of it.
    async fn record_and_tell(
        &self,
        epoch: Epoch,
        was: SandboxState,
        execution: &ExecutionId,
        sandbox: &Sandbox,
        message: &Message,
    ) -> Result<(), StoreError>;

    /// Enters a message for everybody who wants it. Says for how many.
    async fn tell(&self, epoch: Epoch, message: &Message) -> Result<u64, StoreError>;

    /// What is to be tried now: of each webhook at most `each`, and of a sandbox only what was entered first.
    async fn due_deliveries(&self, now: Timestamp, each: u32) -> Result<Vec<Delivery>, StoreError>;

    /// When something is next to be tried, after `now`.
    async fn next_delivery(&self, now: Timestamp) -> Result<Option<Timestamp>, StoreError>;

    /// Its receiver has it, or never will: it goes. `problem` is why not.
    async fn settle_delivery(&self, epoch: Epoch, delivery: &Delivery, at: Timestamp, problem: Option<&str>) -> Result<(), StoreError>;

    /// It is to be tried again.
    async fn postpone_delivery(&self, epoch: Epoch, delivery: &Delivery, due_at: Timestamp, problem: &str) -> Result<(), StoreError>;
}
