//! Taking requests apart. What does not fit becomes a problem that names the field and what was expected, never a framework's own words.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body as _;
use serde::de::DeserializeOwned;

use crate::problem::Problem;

/// The most a JSON body may have unless a route says otherwise.
const JSON_LIMIT: usize = 1 << 20;
/// How long a client may take to send a body that is read whole.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// A JSON body of a given shape.
pub struct JsonBody<T, const LIMIT: usize = JSON_LIMIT>(pub T);

impl<T: DeserializeOwned, S: Send + Sync, const LIMIT: usize> FromRequest<S> for JsonBody<T, LIMIT> {
    type Rejection = Problem;
    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        if !content_type_is(request.headers(), "application/json") {
            let detail = "send the body as JSON, with `Content-Type: application/json`";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail));
        }
        let bytes = read_limited(request.into_body(), LIMIT).await?;
        // Serde takes a list for any structure, field by field; no request is meant that way.
        if bytes.trim_ascii_start().first() == Some(&b'[') {
            return Err(Problem::invalid("body", "body: expected an object, got a list"));
        }
        let mut json = serde_json::Deserializer::from_slice(&bytes);
        let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let path = error.path().to_string();
            let inner = error.into_inner();
            match inner.classify() {
                serde_json::error::Category::Data => misfit(&path, &inner),
                _ => Problem::new(StatusCode::BAD_REQUEST, "malformed_json", format!("the body is not JSON: {inner}")),
            }
        })?;
        json.end()
            .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, "malformed_json", format!("the body is not one JSON value: {error}")))?;
        Ok(Self(value))
    }
}

/// A JSON body that may be left out altogether.
pub struct OptionalJson<T>(pub T);

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for OptionalJson<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        if !request.headers().contains_key(header::CONTENT_TYPE) && request.body().is_end_stream() {
            return Ok(Self(T::default()));
        }
        let JsonBody(value) = JsonBody::<T>::from_request(request, state).await?;
        Ok(Self(value))
    }
}

/// The query string, in a given shape.
pub struct QueryOf<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryOf<T> {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let query = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
        let value = serde_path_to_error::deserialize(serde_urlencoded::Deserializer::new(query)).map_err(|error| {
            let path = error.path().to_string();
            misfit(&path, error.inner())
        })?;
        Ok(Self(value))
    }
}

/// The variable parts of the path. Ids are taken as text and judged by the handler, which knows what is missing if they name nothing.
pub struct PathOf<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathOf<T> {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(value)) => Ok(Self(value)),
            Err(rejection) => {
                Err(Problem::new(StatusCode::BAD_REQUEST, "invalid", format!("the path does not fit: {}", rejection.body_text())))
            }
        }
    }
}

/// Something that must happen before long.
pub struct Timed;

impl Timed {
    /// Gives the client half a minute for `work`.
    pub async fn read<T>(work: impl Future<Output = T>) -> Result<T, Problem> {
        tokio::time::timeout(BODY_TIMEOUT, work).await.map_err(|_| {
            Problem::new(
                StatusCode::REQUEST_TIMEOUT,
                "request_timeout",
                format!("the body did not arrive within {} seconds", BODY_TIMEOUT.as_secs()),
            )
        })
    }
}

/// Reads a body whole, if it is no larger than `limit` and comes in time.
pub async fn read_limited(body: Body, limit: usize) -> Result<Bytes, Problem> {
    match Timed::read(Limited::new(body, limit).collect()).await? {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", format!("the body may have {limit} bytes at most")))
        }
        Err(_) => Err(Problem::new(StatusCode::BAD_REQUEST, "body_cut_short", "the body ended before it was complete")),
    }
}

/// Whether the body is said to be of this type, whatever its parameters.
pub fn content_type_is(headers: &HeaderMap, expected: &str) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case(expected))
}

/// What serde says about a field, with the field named. A missing or unknown field is in the words, not in the path.
fn misfit(path: &str, error: &dyn std::fmt::Display) -> Problem {
    let words = error.to_string();
    let words = words.rsplit_once(" at line ").map_or(words.as_str(), |(words, _)| words);
    let named =
        ["missing field `", "unknown field `", "duplicate field `"].iter().find_map(|start| words.strip_prefix(start)?.split('`').next());
    let parent = if path == "." { "" } else { path };
    let field = match named {
        Some(name) if parent.is_empty() => name.to_owned(),
        // serde names the unknown key itself as the path.
        Some(name) if parent == name || parent.ends_with(&format!(".{name}")) => parent.to_owned(),
        Some(name) => format!("{parent}.{name}"),
        None if parent.is_empty() => "body".to_owned(),
        None => parent.to_owned(),
    };
    let detail = format!("{field}: {words}");
    Problem::invalid(field, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Limits {
        #[expect(dead_code, reason = "only its place in the shape matters")]
        pids: u32,
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Shape {
        #[expect(dead_code, reason = "only its place in the shape matters")]
        limits: Limits,
    }

    async fn refused(content_type: &str, body: &str) -> (u16, &'static str, Option<String>) {
        let request = Request::builder().header(header::CONTENT_TYPE, content_type).body(Body::from(body.to_owned())).unwrap();
        let Err(problem) = JsonBody::<Shape, 100>::from_request(request, &()).await else { panic!("{body} was taken") };
        let body = problem.body(None);
        (body.status, body.code, body.field)
    }

    #[tokio::test]
    async fn what_does_not_fit_is_named() {
        let field = |name: &str| (400, "invalid", Some(name.to_owned()));
        assert_eq!(refused("application/json", r#"{"limits":{"pids":"x"}}"#).await, field("limits.pids"));
        assert_eq!(refused("application/json", r#"{"limits":{"pids":1,"pidz":2}}"#).await, field("limits.pidz"));
        assert_eq!(refused("application/json", r#"{"limits":{}}"#).await, field("limits.pids"));
        assert_eq!(refused("application/json", r#"{"limit":{}}"#).await, field("limit"));
        assert_eq!(refused("application/json", "[]").await, field("body"));
        assert_eq!(refused("application/json", r#" [{"pids":1}]"#).await, field("body"), "which serde would take");
        assert_eq!(refused("application/json", r#"{"limits":"#).await.1, "malformed_json");
        assert_eq!(refused("application/json", r#"{"limits":{"pids":1}} x"#).await.1, "malformed_json");
        assert_eq!(refused("text/plain", "{}").await.0, 415);
        assert_eq!(refused("application/json", &" ".repeat(101)).await.0, 413);
    }

    #[tokio::test]
    async fn a_query_that_does_not_fit_is_named_too() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Page {
            #[expect(dead_code, reason = "only its place in the shape matters")]
            limit: Option<u32>,
        }
        for (query, field) in [("limit=x", "limit"), ("limit=-1", "limit"), ("limi=1", "limi"), ("limit=1&limit=2", "limit")] {
            let (mut parts, ()) = Request::builder().uri(format!("/x?{query}")).body(()).unwrap().into_parts();
            let Err(problem) = QueryOf::<Page>::from_request_parts(&mut parts, &()).await else { panic!("{query} was taken") };
            assert_eq!(problem.body(None).field.as_deref(), Some(field), "{query}");
        }
    }
}
