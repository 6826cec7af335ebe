//! Webhooks on the wire.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A webhook to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"url": "https://example.com/hook", "kinds": ["sandbox.ended", "budget.reached"]}))]
pub(crate) struct WebhookRequest {
    /// Where messages go: `https://`, and no private address unless the operator allowed it.
    pub(crate) url: String,
    /// What it is told of: `sandbox.created`, `sandbox.paused`, `sandbox.resumed`, `sandbox.ended`, `budget.warning`, `budget.reached`; everything
    /// when left out.
    #[serde(default)]
    pub(crate) kinds: Vec<String>,
}

/// A webhook.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Webhook)]
pub(crate) struct WebhookView {
    /// Its name.
    #[schema(example = "wk3v9m2x8c7p4q6w5z2n")]
    pub(crate) id: String,
    /// Where messages go.
    pub(crate) url: String,
    /// What it is told of; everything when empty.
    pub(crate) kinds: Vec<&'static str>,
    /// Since when.
    pub(crate) created_at: String,
    /// When a message last arrived.
    #[schema(required = true)]
    pub(crate) delivered_at: Option<String>,
    /// What went wrong the last time, if it did.
    #[schema(required = true)]
    pub(crate) problem: Option<String>,
    /// How many messages wait.
    pub(crate) waiting: u64,
}

/// A webhook that was just added.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = NewWebhook)]
pub(crate) struct NewWebhookView {
    /// The webhook.
    #[serde(flatten)]
    pub(crate) webhook: WebhookView,
    /// What messages are signed with, as in Standard Webhooks. Shown once.
    #[schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    pub(crate) secret: String,
}

/// Webhooks.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookList {
    /// Oldest first.
    pub(crate) webhooks: Vec<WebhookView>,
}
