//! A name for each request: the client's own if it is harmless, else one of ours. It is in the answer, in problems and on log lines.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use belljar_types::hex;

/// The header, in and out.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The name of one request; in the request's extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(HeaderValue);

impl RequestId {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        match headers.get(HEADER) {
            Some(value) if is_harmless(value.as_bytes()) => Self(value.clone()),
            _ => Self::fresh(),
        }
    }

    fn fresh() -> Self {
        let mut bytes = [0_u8; 12];
        // Without randomness a request still has a name, only not its own.
        let _ = getrandom::fill(&mut bytes);
        Self(HeaderValue::try_from(hex(&bytes)).unwrap_or(HeaderValue::from_static("unnamed")))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or("unnamed")
    }

    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

fn is_harmless(bytes: &[u8]) -> bool {
    (1..=128).contains(&bytes.len())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':' | b'/' | b'+' | b'='))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(text: &'static str) -> RequestId {
        RequestId::of(&HeaderMap::from_iter([(HEADER, HeaderValue::from_static(text))]))
    }

    #[test]
    fn a_harmless_name_is_kept_and_another_is_not() {
        assert_eq!(given("abc-1:2/3").as_str(), "abc-1:2/3");
        for bad in ["", "a b", "a\"b", "a{b}"] {
            let id = given(bad);
            assert_ne!(id.as_str(), bad);
            assert_eq!(id.as_str().len(), 24);
        }
    }
}
