//! Signed permission to reach one port of one sandbox until a moment: for browsers and for people who have no key.
//!
//! The token is not stored: it says for whom it was made and until when, and its HMAC says that this server made it. It is worth no more than its
//! maker was then, it opens one port only, and it cannot be taken back before it expires.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

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

/// Why the server's secret could not be had.
#[derive(Debug, thiserror::Error)]
#[error("{operation} the secret that signs port tokens, {path}")]
pub struct SecretFileError {
    /// What was being attempted.
    pub operation: &'static str,
    /// The file.
    pub path: PathBuf,
    /// What went wrong.
    #[source]
    pub source: std::io::Error,
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

    /// Signs with the secret in a file; makes it, for its owner's eyes only, if it is not there.
    pub fn from_file(path: &Path) -> Result<Self, SecretFileError> {
        let failed = |operation| move |source| SecretFileError { operation, path: path.to_owned(), source };
        let mut secret = [0_u8; 32];
        match File::open(path) {
            Ok(mut file) => file.read_exact(&mut secret).map_err(failed("read"))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                getrandom::fill(&mut secret).map_err(|error| failed("draw")(std::io::Error::other(error)))?;
                let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed("make"))?;
                file.write_all(&secret).and_then(|()| file.sync_all()).map_err(failed("write"))?;
            }
            Err(error) => return Err(failed("open")(error)),
        }
        Ok(Self::new(secret))
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

    #[test]
    fn the_secret_is_made_once_and_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let directory = std::env::temp_dir().join(format!("belljar-port-token-{}", SandboxId::random()));
        std::fs::create_dir(&directory).unwrap();
        let path = directory.join("port-secret");
        let first = PortTokens::from_file(&path).unwrap();
        let second = PortTokens::from_file(&path).unwrap();
        assert!(first.secret == second.secret);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
