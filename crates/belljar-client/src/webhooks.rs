//! Webhooks: who is told what happens.

use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::error::ClientError;

/// A webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookOf {
    /// Its name.
    pub id: String,
    /// Where messages go.
    pub url: String,
    /// What it is told of; everything when empty.
    pub kinds: Vec<String>,
    /// Since when, RFC 3339.
    pub created_at: String,
    /// When a message last arrived, RFC 3339.
    pub delivered_at: Option<String>,
    /// What went wrong the last time, if it did.
    pub problem: Option<String>,
    /// How many messages wait.
    pub waiting: u64,
}

/// A webhook that was just added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewWebhook {
    /// The webhook.
    #[serde(flatten)]
    pub webhook: WebhookOf,
    /// What messages are signed with; shown once.
    pub secret: String,
}

#[derive(Serialize)]
struct Asked<'a> {
    url: &'a str,
    kinds: &'a [String],
}

#[derive(Deserialize)]
struct WebhookList {
    webhooks: Vec<WebhookOf>,
}

impl Client {
    /// Tells an address from now on.
    pub async fn add_webhook(&self, url: &str, kinds: &[String]) -> Result<NewWebhook, ClientError> {
        self.ask(Method::POST, ["v1", "webhooks"]).json(&Asked { url, kinds }).fetch().await
    }

    /// The project's webhooks.
    pub async fn webhooks(&self) -> Result<Vec<WebhookOf>, ClientError> {
        let list: WebhookList = self.ask(Method::GET, ["v1", "webhooks"]).fetch().await?;
        Ok(list.webhooks)
    }

    /// Tells an address nothing any more.
    pub async fn remove_webhook(&self, id: &str) -> Result<(), ClientError> {
        self.ask(Method::DELETE, ["v1", "webhooks", id]).done().await
    }
}
