//! Webhooks, from the core's words to what travels.

use belljar_types::{MessageKind, Webhook};

use super::moment;
use crate::dto::WebhookView;

pub(crate) fn webhook_view(webhook: &Webhook) -> WebhookView {
    WebhookView {
        id: webhook.id.to_string(),
        url: webhook.url.clone(),
        kinds: webhook.kinds.iter().copied().map(MessageKind::as_str).collect(),
        created_at: moment(webhook.created_at),
        delivered_at: webhook.delivered_at.map(moment),
        problem: webhook.problem.clone(),
        waiting: webhook.waiting,
    }
}
