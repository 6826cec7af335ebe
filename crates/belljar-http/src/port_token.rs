//! Signed permission to reach one port of one sandbox until a moment: for browsers and for people who have no key.
//!
//! The token is not stored: it says for whom it was made and until when, and its HMAC says that this server made it. It is worth no more than its
//! maker was then, it opens one port only, and it cannot be taken back before it expires.

use belljar_types::{KeyId, ProjectId, SandboxId, Secret, Timestamp, hex};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// The header a token may come in.
pub const TOKEN_HEADER: &str = "x-belljar-token";
/// The query parameter a token may come in, once.
pub const TOKEN_PARAMETER: &str = "belljar_token";
/// The cookie that the query parameter is turned into.
pub const TOKEN_COOKIE: &str = "belljar_token";
/// The same over TLS: browsers take a cookie of this name from the host itself only, and send it to no other.
pub const SECURE_TOKEN_COOKIE: &str = "__Host-belljar_token";

/// What a valid token stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortGrant {
    /// Whose sandbox it is.
    pub project: ProjectId,
    /// The key that asked for the token.
    pub key: KeyId,
    /// Until when.
    pub expires_at: Timestamp,
}

/// Makes and checks tokens.
pub struct PortTokens {
    secret: Secret<[u8; 32]>,
}

impl PortTokens {
    /// Signs with this secret.
    pub fn new(secret: [u8; 32]) -> Self {
        Self { secret: Secret::new(secret) }
    }

    /// A token for one port of one sandbox.
    pub fn sign(&self, sandbox: &SandboxId, port: u16, grant: &PortGrant) -> String {
        let PortGrant { project, key, expires_at } = grant;
        let claim = format!("{}.{project}.{key}", expires_at.0);
        format!("{claim}.{}", hex(&self.mac(sandbox, port, &claim)))
    }

    /// What a token grants for this port, if this server made it and it has not expired.
    pub fn verify(&self, sandbox: &SandboxId, port: u16, token: &str) -> Option<PortGrant> {
        self.verify_at(sandbox, port, token, Timestamp::now())
    }

    fn verify_at(&self, sandbox: &SandboxId, port: u16, token: &str, now: Timestamp) -> Option<PortGrant> {
        let (claim, mac) = token.rsplit_once('.')?;
        let expected = hex(&self.mac(sandbox, port, claim));
        if !bool::from(expected.as_bytes().ct_eq(mac.as_bytes())) {
            return None;
        }
        let mut parts = claim.split('.');
        let expires_at = Timestamp(parts.next()?.parse().ok()?);
        let grant = PortGrant { project: parts.next()?.parse().ok()?, key: parts.next()?.parse().ok()?, expires_at };
        (now < expires_at).then_some(grant)
    }

    fn mac(&self, sandbox: &SandboxId, port: u16, claim: &str) -> [u8; 32] {
        // HMAC takes keys of any length: there is nothing to fail.
        let mut mac = Hmac::<Sha256>::new_from_slice(self.secret.reveal()).expect("HMAC takes a key of any length");
        mac.update(format!("belljar port token 1\n{sandbox}\n{port}\n{claim}").as_bytes());
        mac.finalize().into_bytes().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_opens_one_port_of_one_sandbox_for_a_while() {
        let tokens = PortTokens::new([7; 32]);
        let (sandbox, other) = (SandboxId::random(), SandboxId::random());
        let grant = PortGrant { project: "default".parse().unwrap(), key: KeyId::random(), expires_at: Timestamp(1000) };
        let token = tokens.sign(&sandbox, 80, &grant);
        let verify = |sandbox, port, token: &str, now| tokens.verify_at(sandbox, port, token, Timestamp(now));
        assert_eq!(verify(&sandbox, 80, &token, 999), Some(grant.clone()));
        assert_eq!(verify(&sandbox, 80, &token, 1000), None, "expired");
        assert_eq!(verify(&sandbox, 81, &token, 0), None, "another port");
        assert_eq!(verify(&other, 80, &token, 0), None, "another sandbox");
        assert_eq!(verify(&sandbox, 80, &token.replacen("1000", "9000", 1), 0), None, "a longer life");
        assert_eq!(verify(&sandbox, 80, &token.replacen("default", "another", 1), 0), None, "another project");
        assert_eq!(verify(&sandbox, 80, "", 0), None);
        assert_eq!(PortTokens::new([8; 32]).verify_at(&sandbox, 80, &token, Timestamp(0)), None, "another server");
    }
}
