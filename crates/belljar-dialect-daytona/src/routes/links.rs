//! Signed links to files: whoever has one fetches or sends that file without a key, until it expires. Clients sign them by themselves, with a key that is
//! the sandbox's; here it is made anew whenever it is needed, from the server's own secret, so that nothing of it is stored but how often it was changed.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::Method;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use belljar_core::Caller;
use belljar_http::{PortGrant, PortTokens, acting_for};
use belljar_types::{KeyId, Sandbox, SandboxId, Scope, Timestamp};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::find::Found;
use super::sandboxes::Answer;
use super::settings::mark;
use crate::state::DaytonaState;
use crate::translate::Marks;

/// No program can listen on port 0, so that no token for a port is ever such a key.
const NO_PORT: u16 = 0;
const PREFIX: &str = "v1_";

/// The key of a sandbox's links. It is worth as much as using its files: whoever may only look is not told.
fn key(tokens: &PortTokens, sandbox: &Sandbox) -> Option<String> {
    let changed = Marks::of(&sandbox.metadata).unwrap_or_default().links;
    // Real keys' names begin with `k`, so that no other signed token is one of these.
    let purpose: KeyId = format!("daytonalinks{changed:08}").parse().ok()?;
    let grant = PortGrant { project: sandbox.project.clone(), key: purpose, expires_at: Timestamp(u64::MAX) };
    Some(tokens.sign(&sandbox.id, NO_PORT, &grant))
}

/// `GET /sandbox/{sandbox}/signing-key`.
pub(super) async fn show(State(state): State<DaytonaState>, Found { who, sandbox }: Found) -> Answer<Json<Option<String>>> {
    who.require(Scope::Use)?;
    Ok(Json(key(&state.port_tokens, &sandbox)))
}

/// `POST /sandbox/{sandbox}/signing-key/rotate`: all links from before are worth nothing.
pub(super) async fn rotate(State(state): State<DaytonaState>, Found { who, sandbox }: Found) -> Answer<Json<Option<String>>> {
    let changed = mark(&state, &who, &sandbox, |marks| marks.links = marks.links.wrapping_add(1) % 100_000_000).await?;
    Ok(Json(key(&state.port_tokens, &changed)))
}

/// A link, as its address says it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Link {
    path: String,
    expires: u64,
    signature: String,
}

impl Link {
    pub(super) fn of(request: &Request) -> Option<Self> {
        let fits = matches!(
            (request.method(), request.uri().path()),
            (&Method::GET, "/files/download") | (&Method::POST, "/files/upload" | "/files/upload-v2")
        );
        let query = request.uri().query().filter(|_| fits)?;
        let mut link = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match name.as_ref() {
                "path" => link.path = value.into_owned(),
                "expires" => link.expires = value.parse().ok()?,
                "signature" => link.signature = value.into_owned(),
                _ => {}
            }
        }
        (!link.signature.is_empty()).then_some(link)
    }

    /// Seconds since 1970, as clients have them; 0 is never.
    fn is_good(&self, method: &Method, key: &str, now: Timestamp) -> bool {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key.as_bytes()) else { return false };
        mac.update(format!("v1:files:{method}:{}:{}", self.path, self.expires).as_bytes());
        let expected = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()));
        let is_ours = bool::from(expected.as_bytes().ct_eq(self.signature.as_bytes()));
        is_ours && (self.expires == 0 || now.0 / 1000 < self.expires)
    }
}

/// For whom a request acts that has no key but is a good link.
pub(super) async fn admit(state: &DaytonaState, which: &str, link: &Link, method: &Method) -> Option<Caller> {
    let id = which.parse::<SandboxId>().ok()?;
    let project = state.known.project_of(&id).await.ok()??;
    let sandbox = state.service.sandbox(&acting_for(project.clone(), Scope::Read), &id).await.ok()?;
    let good = link.is_good(method, &key(&state.port_tokens, &sandbox)?, Timestamp::now());
    let mut who = acting_for(project, Scope::Use);
    // The sandbox is looked at before it is used.
    who.scopes.insert(Scope::Read);
    good.then_some(who)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn a_link_is_for_one_file_one_way_until_it_expires() {
        let get = |uri: &str| Link::of(&Request::builder().uri(uri).body(Body::empty()).unwrap());
        let mut mac = Hmac::<Sha256>::new_from_slice(b"key").unwrap();
        mac.update(b"v1:files:GET:/a b:100");
        let signature = format!("v1_{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()));
        let link = get(&format!("/files/download?path=%2Fa+b&expires=100&signature={signature}")).unwrap();
        let is_good = |link: &Link, method: &Method, key: &str, seconds: u64| link.is_good(method, key, Timestamp(seconds * 1000));
        assert!(is_good(&link, &Method::GET, "key", 99));
        assert!(!is_good(&link, &Method::GET, "key", 100), "expired");
        assert!(!is_good(&link, &Method::POST, "key", 99), "the other way");
        assert!(!is_good(&link, &Method::GET, "yek", 99), "another key");
        assert!(!is_good(&Link { path: "/b".to_owned(), ..link }, &Method::GET, "key", 99), "another file");
        assert_eq!(get("/files?path=x&signature=y"), None, "a directory's list is not a file");
        assert_eq!(get("/files/download?path=x"), None);
    }
}
