//! Signed links to files: whoever has one may read or write that one file, without any token.

use axum::http::{Method, Uri};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use belljar_types::SandboxId;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::errors::ApiError;
use crate::state::E2bState;

/// The query of a request for `/files`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct FileQuery {
    pub(super) path: Option<String>,
    pub(super) username: Option<String>,
    pub(super) signature: Option<String>,
    pub(super) signature_expiration: Option<i64>,
}

impl FileQuery {
    /// Refuses a link that was not signed with this token, for this, or not for now.
    pub(super) fn check(&self, token: &str, method: &Method) -> Result<(), ApiError> {
        let given = self.signature.as_ref().ok_or_else(|| ApiError::unauthorized("missing signature query parameter"))?;
        if !bool::from(self.sign(token, method).as_bytes().ct_eq(given.as_bytes())) {
            return Err(ApiError::unauthorized("invalid signature"));
        }
        match self.signature_expiration {
            Some(until) if until < jiff::Timestamp::now().as_second() => Err(ApiError::unauthorized("signature is already expired")),
            _ => Ok(()),
        }
    }

    fn sign(&self, token: &str, method: &Method) -> String {
        let operation = if *method == Method::POST { "write" } else { "read" };
        let (path, user) = (self.path.as_deref().unwrap_or_default(), self.username.as_deref().unwrap_or_default());
        let mut text = format!("{path}:{operation}:{user}:{token}");
        if let Some(until) = self.signature_expiration {
            text.push_str(&format!(":{until}"));
        }
        format!("v1_{}", STANDARD_NO_PAD.encode(Sha256::digest(text.as_bytes())))
    }
}

/// A signed link that does not say for which sandbox.
pub(crate) struct Signed(FileQuery);

impl Signed {
    pub(crate) fn of(uri: &Uri) -> Option<Self> {
        let query = axum::extract::Query::<FileQuery>::try_from_uri(uri).ok()?;
        query.0.signature.is_some().then_some(Self(query.0))
    }

    /// The sandbox whose token made the signature. Costs a hash or two for each sandbox that lives.
    pub(crate) fn find(&self, state: &E2bState, method: &Method) -> Option<SandboxId> {
        let given = self.0.signature.as_ref()?;
        let signed_by = |token: &str| bool::from(self.0.sign(token, method).as_bytes().ct_eq(given.as_bytes()));
        state.known.find(|id, project| signed_by(&state.tokens.daemon(id, project)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_for_one_file_one_way_one_user_and_a_while() {
        let query = FileQuery { path: Some("/a".into()), ..FileQuery::default() };
        // sha256("/a:read::token"), as any client computes it.
        let signature = "v1_".to_owned() + &STANDARD_NO_PAD.encode(Sha256::digest(b"/a:read::token"));
        let signed = FileQuery { signature: Some(signature), ..query.clone() };
        assert!(signed.check("token", &Method::GET).is_ok());
        for (wrong, method) in [
            (FileQuery { path: Some("/b".into()), ..signed.clone() }, Method::GET),
            (FileQuery { username: Some("root".into()), ..signed.clone() }, Method::GET),
            (FileQuery { signature_expiration: Some(i64::MAX), ..signed.clone() }, Method::GET),
            (signed.clone(), Method::POST),
            (query, Method::GET),
        ] {
            assert!(wrong.check("token", &method).is_err());
        }
        assert!(signed.check("other", &Method::GET).is_err());
        let late = FileQuery { signature_expiration: Some(1), ..signed };
        let late = FileQuery { signature: Some(late.sign("token", &Method::GET)), ..late };
        assert!(late.check("token", &Method::GET).is_err());
    }
}
