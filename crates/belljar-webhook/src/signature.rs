//! Signatures as in Standard Webhooks: HMAC-SHA256 over the message's id, the time and the body.
//!
//! The secret of a webhook is made from its id and a key that only the server has, so that no store and no back-up of one holds it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_types::{Secret, Timestamp, WebhookId};
use hmac::{Hmac, KeyInit, Mac};
use reqwest::RequestBuilder;
use reqwest::header::CONTENT_TYPE;
use sha2::Sha256;

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length will do");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

const PREFIX: &str = "whsec_";

/// A secret that a receiver and the operator agreed on.
#[derive(Debug, Clone)]
pub struct SharedSecret {
    key: Secret<Vec<u8>>,
}

impl SharedSecret {
    /// Reads one as receivers write it down: `whsec_` and at least 24 bytes in Base64. `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let key = STANDARD.decode(text.trim().strip_prefix(PREFIX)?).ok().filter(|key| key.len() >= 24)?;
        Some(Self { key: Secret::new(key) })
    }

    /// As receivers write it down.
    fn text(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(self.key.reveal()))
    }

    /// A request that brings this message, signed now.
    pub fn signed(&self, request: RequestBuilder, message: &str, body: String) -> RequestBuilder {
        let seconds = Timestamp::now().0 / 1000;
        request
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", message)
            .header("webhook-timestamp", seconds)
            .header("webhook-signature", self.sign(message, seconds, &body))
            .body(body)
    }

    /// The value of `webhook-signature`.
    fn sign(&self, message: &str, seconds: u64, body: &str) -> String {
        let time = seconds.to_string();
        let parts: [&[u8]; 5] = [message.as_bytes(), b".", time.as_bytes(), b".", body.as_bytes()];
        format!("v1,{}", STANDARD.encode(mac(self.key.reveal(), &parts)))
    }
}

/// What makes the secrets of all webhooks.
pub(crate) struct Signer {
    key: Secret<[u8; 32]>,
}

impl Signer {
    pub(crate) fn new(key: [u8; 32]) -> Self {
        Self { key: Secret::new(key) }
    }

    /// What the messages of a webhook are signed with.
    pub(crate) fn of(&self, webhook: &WebhookId) -> SharedSecret {
        let key = mac(self.key.reveal(), &[b"belljar webhook ", webhook.as_str().as_bytes()]);
        SharedSecret { key: Secret::new(key.to_vec()) }
    }

    /// As receivers write it down.
    pub(crate) fn secret(&self, webhook: &WebhookId) -> Secret<String> {
        Secret::new(self.of(webhook).text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Standard Webhooks specification.
    #[test]
    fn a_signature_is_what_others_compute() {
        let secret = SharedSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert!(SharedSecret::parse("whsec_c2hvcnQ=").is_none() && SharedSecret::parse("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").is_none());
    }

    #[test]
    fn each_webhook_has_a_secret_of_its_own() {
        let signer = Signer::new([7; 32]);
        let (one, other) = (WebhookId::random(), WebhookId::random());
        assert_eq!(signer.secret(&one).reveal(), Signer::new([7; 32]).secret(&one).reveal(), "through restarts");
        assert_ne!(signer.secret(&one).reveal(), signer.secret(&other).reveal());
    }
}
