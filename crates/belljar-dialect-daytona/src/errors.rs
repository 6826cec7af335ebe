//! Refusals as Daytona's clients read them: `{statusCode, error, message, code, source, path, method, timestamp}`. SDKs choose the exception by
//! source and code, and by the status where they know no such code.

mod guest;
mod shape;

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use belljar_core::{CoreError, ErrorClass, chain};
use belljar_http::Problem;
use belljar_types::{Invalid, escape_untrusted};

pub(crate) use guest::{is_no_such_file, of_guest};
pub(crate) use shape::{Source, document_of_daemon, shape};

/// A refusal.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: Option<&'static str>,
    message: String,
    retry_after: Option<Duration>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, code: None, message: message.into(), retry_after: None }
    }

    /// With a word that programs decide by.
    #[must_use]
    pub(crate) fn with_code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    pub(crate) fn no_sandbox(id_or_name: &str) -> Self {
        Self::not_found(format!("Sandbox with ID or name {} not found", escape_untrusted(id_or_name.as_bytes())))
    }

    /// What this server does not do. 501, which no client takes for success.
    pub(crate) fn unsupported(what: &str) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, format!("{what} is not supported by this host")).with_code("NOT_SUPPORTED")
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// The word that programs decide by: the status in words where there is no better one.
    pub(crate) fn code(&self) -> String {
        let words = || self.status.canonical_reason().unwrap_or("ERROR").to_ascii_uppercase().replace([' ', '-'], "_");
        self.code.map_or_else(words, str::to_owned)
    }
}

impl IntoResponse for ApiError {
    /// The body is for whoever is not behind [`shape()`], which writes it anew.
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(serde_json::json!({ "message": self.message }))).into_response();
        if let Some(after) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(after.as_secs().max(1)));
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl From<CoreError> for ApiError {
    fn from(error: CoreError) -> Self {
        let status = match (&error, error.class()) {
            (CoreError::NoSandbox { id } | CoreError::Ended { id, .. }, _) => return Self::no_sandbox(id.as_str()),
            // Daytona's own answer to a snapshot that is not there.
            (CoreError::NoTemplate { name }, _) => {
                return Self::bad_request(format!("Snapshot {name} not found: no template or snapshot has that name"));
            }
            // Whoever uses what stands still has to start it first.
            (CoreError::WrongState { .. }, _) => StatusCode::BAD_REQUEST,
            (_, ErrorClass::Invalid) => StatusCode::BAD_REQUEST,
            (_, ErrorClass::Forbidden | ErrorClass::Quota) => StatusCode::FORBIDDEN,
            (_, ErrorClass::NotFound) => StatusCode::NOT_FOUND,
            (_, ErrorClass::Conflict) => StatusCode::CONFLICT,
            (_, ErrorClass::Busy | ErrorClass::Unavailable) => StatusCode::SERVICE_UNAVAILABLE,
            (_, ErrorClass::Unsupported) => StatusCode::UNPROCESSABLE_ENTITY,
            (_, ErrorClass::Internal) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        if status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(code = error.code(), causes = chain(&error), "a Daytona request failed");
        }
        let message = error.invalid().map_or_else(|| error.to_string(), Invalid::to_string);
        Self { status, code: None, message, retry_after: error.retry_after() }
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        Self::new(problem.status(), problem.detail())
    }
}

impl From<Invalid> for ApiError {
    fn from(invalid: Invalid) -> Self {
        Self::bad_request(invalid.to_string())
    }
}
