//! The one place where refusals become bodies: what a client is told of its own request is known there, whoever refused it.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use belljar_http::{Problem, moment};
use belljar_types::{Timestamp, escape_untrusted};

use super::ApiError;

/// Who refuses, as clients know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The control plane.
    Api,
    /// The toolbox.
    Daemon,
    /// Ports of sandboxes.
    Proxy,
}

impl Source {
    fn as_str(self) -> &'static str {
        match self {
            Self::Api => "DAYTONA_API",
            Self::Daemon => "DAYTONA_DAEMON",
            Self::Proxy => "DAYTONA_PROXY",
        }
    }
}

/// A refusal as a document.
fn document(error: &ApiError, source: Source, method: &str, path: &str) -> serde_json::Value {
    serde_json::json!({
        "statusCode": error.status().as_u16(),
        "error": error.status().canonical_reason().unwrap_or_default(),
        "message": error.message(),
        "code": error.code(),
        "source": source.as_str(),
        "path": escape_untrusted(path.as_bytes()),
        "method": method,
        "timestamp": moment(Timestamp::now()),
    })
}

/// A refusal of one file among several, which is a part of an answer and no answer of its own.
pub(crate) fn document_of_daemon(error: &ApiError, path: &str) -> serde_json::Value {
    document(error, Source::Daemon, "POST", path)
}

/// The middleware around all of the dialect's routes.
pub(crate) async fn shape(State(source): State<Source>, request: Request, next: Next) -> Response {
    let (method, path) = (request.method().as_str().to_owned(), request.uri().path().to_owned());
    let mut response = next.run(request).await;
    let refusal = match (response.extensions_mut().remove::<ApiError>(), response.extensions_mut().remove::<Problem>()) {
        (Some(error), _) => error,
        (None, Some(problem)) => problem.into(),
        // The framework's own refusal of a method, which says no more than its status.
        (None, None) if response.status() == StatusCode::METHOD_NOT_ALLOWED => {
            ApiError::new(StatusCode::METHOD_NOT_ALLOWED, format!("Cannot {method} {}", escape_untrusted(path.as_bytes())))
        }
        (None, None) => return response,
    };
    // The length is of the body that is replaced.
    response.headers_mut().remove(header::CONTENT_LENGTH);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    *response.body_mut() = Body::from(document(&refusal, source, &method, &path).to_string());
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_all_that_sdks_look_at() {
        let error = ApiError::not_found("gone").with_code("FILE_NOT_FOUND");
        let said = document(&error, Source::Daemon, "GET", "/a\n");
        for (field, value) in
            [("message", "gone"), ("code", "FILE_NOT_FOUND"), ("source", "DAYTONA_DAEMON"), ("error", "Not Found"), ("path", "/a\\n")]
        {
            assert_eq!(said[field], value, "{field}");
        }
        assert_eq!(said["statusCode"], 404);
        assert_eq!(document(&ApiError::conflict("x"), Source::Api, "POST", "/")["code"], "CONFLICT");
    }
}
