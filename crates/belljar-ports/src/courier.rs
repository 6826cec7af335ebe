//! [`Courier`]: who carries messages to whoever wants them.

use async_trait::async_trait;
use belljar_types::{Delivery, Invalid, Secret, WebhookId};

/// Why a message did not arrive. It is tried again.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
pub struct NotDelivered {
    /// What happened, for people; nothing that the receiver wrote.
    pub problem: String,
}

/// Carries messages to addresses outside.
#[async_trait]
pub trait Courier: Send + Sync {
    /// Refuses addresses to which nothing would be carried.
    fn check(&self, url: &str) -> Result<(), Invalid>;

    /// What a receiver needs to check that messages are from here.
    fn secret(&self, webhook: &WebhookId) -> Secret<String>;

    /// Carries a message once, signed. `Ok` means that its receiver has taken it.
    async fn deliver(&self, delivery: &Delivery) -> Result<(), NotDelivered>;
}
