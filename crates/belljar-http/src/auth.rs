//! Who asks. A key comes as `Authorization: Bearer …` or `X-API-Key`; whoever has none, or a wrong one, is told no more than that.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use belljar_core::{Caller, Service};
use belljar_types::KeyId;

use crate::bucket::{Buckets, Rate};
use crate::problem::Problem;

/// The other header a key may come in.
pub const KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");

/// Lets in whoever has a key, as often as the rate allows.
pub struct Gate {
    service: Arc<Service>,
    rates: Option<Buckets<KeyId>>,
}

impl Gate {
    /// Keys are looked up in `service`; each may ask at `rate`, or as often as it likes.
    pub fn new(service: Arc<Service>, rate: Option<Rate>) -> Arc<Self> {
        Arc::new(Self { service, rates: rate.map(Buckets::new) })
    }

    /// Who presents these headers.
    pub async fn admit(&self, headers: &HeaderMap) -> Result<Authenticated, Problem> {
        let Some(key) = presented_key(headers) else {
            return Err(unauthorized("this needs an API key: send it as `Authorization: Bearer bj_…` or `X-API-Key: bj_…`"));
        };
        let caller = self.service.authenticate(key).await?;
        if let Some(Err(wait)) = self.rates.as_ref().map(|rates| rates.take(caller.key.clone())) {
            let detail = "this key asks more often than it may; wait as long as Retry-After says";
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", detail).retry_after(wait));
        }
        let span = tracing::Span::current();
        span.record("project", caller.project.as_str());
        span.record("key", caller.key.as_str());
        Ok(Authenticated(Arc::new(caller)))
    }

    /// The middleware: behind it, every handler may ask for [`Authenticated`].
    pub async fn check(State(gate): State<Arc<Self>>, mut request: Request, next: Next) -> Response {
        match gate.admit(request.headers()).await {
            Ok(who) => {
                request.extensions_mut().insert(who);
                next.run(request).await
            }
            Err(problem) => problem.into_response(),
        }
    }
}

/// The answer to whoever shows no key, or a wrong one.
pub fn unauthorized(detail: &str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
}

/// The key in these headers, if there is one in either place.
pub fn presented_key(headers: &HeaderMap) -> Option<&str> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| {
        let (scheme, key) = value.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
    });
    bearer.or_else(|| headers.get(KEY_HEADER)?.to_str().ok()).filter(|key| !key.is_empty())
}

/// The caller of a request that came through [`Gate::check`].
#[derive(Clone)]
pub struct Authenticated(pub Arc<Caller>);

impl Deref for Authenticated {
    type Target = Caller;
    fn deref(&self) -> &Caller {
        &self.0
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Authenticated {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| unauthorized("this needs an API key"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_in_either_header() {
        let headers = |name: HeaderName, value: &'static str| HeaderMap::from_iter([(name, value.parse().unwrap())]);
        assert_eq!(presented_key(&headers(header::AUTHORIZATION, "Bearer bj_1")), Some("bj_1"));
        assert_eq!(presented_key(&headers(header::AUTHORIZATION, "bearer  bj_1 ")), Some("bj_1"));
        assert_eq!(presented_key(&headers(KEY_HEADER, "bj_1")), Some("bj_1"));
        for (name, value) in
            [(header::AUTHORIZATION, "Basic bj_1"), (header::AUTHORIZATION, "bj_1"), (header::AUTHORIZATION, "Bearer "), (KEY_HEADER, "")]
        {
            assert_eq!(presented_key(&headers(name, value)), None, "{value}");
        }
    }
}
