//! [`Postman`]: carries one message at a time to one address, and says whether it was taken.

use std::time::Duration;

use async_trait::async_trait;
use belljar_policy::Cidr;
use belljar_ports::{Courier, NotDelivered};
use belljar_types::{Delivery, Invalid, Secret, WebhookId};
use reqwest::Url;

use crate::guard::Guard;
use crate::signature::Signer;

/// A receiver that takes longer is asked again later.
const PATIENCE: Duration = Duration::from_secs(10);
const LONGEST_URL: usize = 2048;

/// Where messages may go besides public addresses over TLS.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    /// Networks that are private or reserved.
    pub reachable: Vec<Cidr>,
    /// Whether `http://` will do.
    pub plain_http: bool,
}

/// Why there is no postman.
#[derive(Debug, thiserror::Error)]
#[error("set up the client for webhooks")]
pub struct PostmanError(#[source] reqwest::Error);

/// Carries messages over HTTP.
pub struct Postman {
    http: reqwest::Client,
    guard: Guard,
    signer: Signer,
    plain_http: bool,
}

impl Postman {
    /// One that signs with what it makes from this key.
    pub fn new(key: [u8; 32], reach: Reach) -> Result<Self, PostmanError> {
        use_tls();
        let guard = Guard::new(reach.reachable);
        let http = reqwest::Client::builder()
            .user_agent(concat!("belljar/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(std::sync::Arc::new(guard.clone()))
            .redirect(reqwest::redirect::Policy::none())
            // A proxy would resolve names itself.
            .no_proxy()
            .tcp_nodelay(true)
            .timeout(PATIENCE)
            .build()
            .map_err(PostmanError)?;
        Ok(Self { http, guard, signer: Signer::new(key), plain_http: reach.plain_http })
    }

    fn parse(&self, text: &str) -> Result<Url, Invalid> {
        let refused = |expected: &str| Invalid::new("url", expected, text);
        if text.len() > LONGEST_URL {
            return Err(refused("at most 2048 characters"));
        }
        let url: Url = text.parse().map_err(|_| refused("an address as in https://example.com/hook"))?;
        match url.scheme() {
            "https" => {}
            "http" if self.plain_http => {}
            "http" => return Err(refused("https://; the operator can allow http:// with [webhooks] plain_http")),
            _ => return Err(refused("an address as in https://example.com/hook")),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("an address without a user or password; messages are signed instead"));
        }
        // A name is checked when it is resolved, a literal address has to be here.
        let host = url.host_str().unwrap_or_default();
        if let Ok(address) = host.trim_matches(['[', ']']).parse() {
            self.guard.check(address).map_err(|inside| refused(&format!("a public address: {inside}")))?;
        }
        Ok(url)
    }
}

#[async_trait]
impl Courier for Postman {
    fn check(&self, url: &str) -> Result<(), Invalid> {
        self.parse(url).map(drop)
    }

    fn secret(&self, webhook: &WebhookId) -> Secret<String> {
        self.signer.secret(webhook)
    }

    async fn deliver(&self, delivery: &Delivery) -> Result<(), NotDelivered> {
        let url = self.parse(&delivery.url).map_err(|refused| NotDelivered { problem: refused.to_string() })?;
        let secret = self.signer.of(&delivery.webhook);
        let request = secret.signed(self.http.post(url), &delivery.message, delivery.body.clone());
        let answer = request.send().await.map_err(|error| NotDelivered { problem: why(&error) })?;
        let status = answer.status();
        if status.is_success() { Ok(()) } else { Err(NotDelivered { problem: format!("it answered {}", status.as_u16()) }) }
    }
}

/// Makes sure that the process has chosen who does its cryptography.
pub fn use_tls() {
    // Somebody else in this program may have chosen a provider before; theirs is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// What went wrong, without the address, which whoever asks knows; and with nothing that the receiver wrote.
fn why(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("no answer within {} s", PATIENCE.as_secs());
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    belljar_types::escape_untrusted(cause.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_inside_and_odd_ones_are_refused_by_name() {
        let strict = Postman::new([0; 32], Reach::default()).unwrap();
        for (url, part) in [
            ("http://example.com/hook", "plain_http"),
            ("ftp://example.com/", "https://example.com/hook"),
            ("https://user:word@example.com/", "signed instead"),
            ("https://127.0.0.1/", "loopback"),
            ("https://169.254.169.254/latest", "link-local"),
            ("https://[::1]/", "loopback"),
            ("https://[::ffff:10.0.0.1]/", "private"),
            ("https://0x7f.1/", "loopback"),
            ("https://2130706433/", "loopback"),
            ("nonsense", "https://example.com/hook"),
        ] {
            let refused = strict.check(url).unwrap_err();
            assert_eq!(refused.field, "url");
            assert!(refused.to_string().contains(part), "{url}: {refused}");
        }
        strict.check("https://example.com/hook?x=1").unwrap();
        let lax = Postman::new([0; 32], Reach { reachable: vec!["127.0.0.0/8".parse().unwrap()], plain_http: true }).unwrap();
        lax.check("http://127.0.0.1:8080/").unwrap();
        assert!(lax.check("http://10.0.0.1/").is_err());
    }
}
