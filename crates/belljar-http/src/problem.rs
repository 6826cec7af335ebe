//! Errors as clients see them: RFC 9457 `application/problem+json` with a stable `code`.
//!
//! Whatever goes wrong in a front becomes a [`Problem`]; nothing answers an error in another shape. A problem carries its cause for the
//! log, and never shows it: the client gets the outermost words, which are written for it. The body is written where the request id is
//! known, in [`crate::Front`].

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use belljar_core::{CoreError, Denied, ErrorClass};
use belljar_types::{Invalid, chain};

/// An error on its way to a client.
#[derive(Debug, Clone)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    field: Option<String>,
    retry_after: Option<Duration>,
    cause: Option<Arc<dyn Error + Send + Sync>>,
}

/// The body of a problem.
#[derive(Debug, Clone, serde::Serialize)]
pub struct ProblemBody {
    /// `urn:belljar:problem:` and the code.
    #[serde(rename = "type")]
    pub kind: String,
    /// The code in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// Stable; programs decide by it.
    pub code: &'static str,
    /// What happened and what to do, for people.
    pub detail: String,
    /// The field of the request that was wrong, dotted for nested ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Seconds after which to try again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// Which request this was; the server's log has the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl Problem {
    /// A problem with words for the client.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), field: None, retry_after: None, cause: None }
    }

    /// A request that is wrong in one field.
    pub fn invalid(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { field: Some(field.into()), ..Self::new(StatusCode::BAD_REQUEST, "invalid", detail) }
    }

    /// Something of ours failed; the cause goes to the log only.
    pub fn internal(detail: impl Into<String>, cause: impl Error + Send + Sync + 'static) -> Self {
        Self { cause: Some(Arc::new(cause)), ..Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail) }
    }

    /// With another HTTP status than its kind has.
    #[must_use]
    pub fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Says when to try again.
    #[must_use]
    pub fn retry_after(self, after: Duration) -> Self {
        Self { retry_after: Some(after), ..self }
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The stable code.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The words for people.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// All causes on one line, for the log; empty if there are none.
    pub(crate) fn causes(&self) -> String {
        self.cause.as_deref().map_or_else(String::new, |cause| chain(cause))
    }

    /// What is sent.
    pub fn body(&self, request_id: Option<&str>) -> ProblemBody {
        ProblemBody {
            kind: format!("urn:belljar:problem:{}", self.code),
            title: self.code.replace('_', " "),
            status: self.status.as_u16(),
            code: self.code,
            detail: self.detail.clone(),
            field: self.field.clone(),
            retry_after: self.retry_after.map(whole_seconds),
            request_id: request_id.map(str::to_owned),
        }
    }

    pub(crate) fn json(&self, request_id: Option<&str>) -> Vec<u8> {
        // Plain data with text for keys is always JSON.
        serde_json::to_vec(&self.body(request_id)).unwrap_or_default()
    }

    fn render(&self) -> Response {
        let mut response = (self.status, [(header::CONTENT_TYPE, "application/problem+json")], self.json(None)).into_response();
        if let Some(after) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(whole_seconds(after)));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"belljar\""));
        }
        response
    }
}

/// Rounded up: whoever waits this long does not come too early.
fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.render();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        Self::invalid(invalid.field.clone(), invalid.to_string())
    }
}

impl From<CoreError> for Problem {
    fn from(error: CoreError) -> Self {
        let status = match error.class() {
            ErrorClass::Invalid => StatusCode::BAD_REQUEST,
            ErrorClass::Forbidden => StatusCode::FORBIDDEN,
            ErrorClass::NotFound => StatusCode::NOT_FOUND,
            ErrorClass::Conflict => StatusCode::CONFLICT,
            ErrorClass::Quota => StatusCode::TOO_MANY_REQUESTS,
            ErrorClass::Busy | ErrorClass::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            ErrorClass::Unsupported => StatusCode::UNPROCESSABLE_ENTITY,
            ErrorClass::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let invalid = error.invalid();
        Self {
            status,
            code: error.code(),
            detail: invalid.map_or_else(|| error.to_string(), Invalid::to_string),
            field: invalid.map(|invalid| invalid.field.clone()),
            retry_after: error.retry_after(),
            cause: error.source().is_some().then(|| Arc::new(error) as Arc<dyn Error + Send + Sync>),
        }
    }
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Store(error) => CoreError::from(error).into(),
            denied => Self::new(StatusCode::UNAUTHORIZED, "unauthorized", denied.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_field_is_named_and_nothing_else_is_said() {
        let problem = Problem::from(Invalid::new("limits.pids", "16 to 4000000", "3"));
        let body = serde_json::to_value(problem.body(Some("r1"))).unwrap();
        let expected = serde_json::json!({
            "type": "urn:belljar:problem:invalid", "title": "invalid", "status": 400, "code": "invalid",
            "detail": "limits.pids: expected 16 to 4000000, got \"3\"", "field": "limits.pids", "request_id": "r1"
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn a_cause_is_for_the_log_only() {
        let problem = Problem::internal("the archive could not be kept", std::io::Error::other("disk on fire"));
        assert_eq!(problem.causes(), "disk on fire");
        assert!(!serde_json::to_string(&problem.body(None)).unwrap().contains("fire"));
    }

    #[test]
    fn waiting_is_rounded_up() {
        let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "full").retry_after(Duration::from_millis(1200));
        let response = problem.into_response();
        assert_eq!(response.headers()[header::RETRY_AFTER], "2");
    }
}
