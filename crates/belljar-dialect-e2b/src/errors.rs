//! Errors as E2B's clients read them: `{code, message}` from the control plane and `/files`, Connect's words from the daemon's calls, and
//! the gateway's 502 for a sandbox that is not there. Clients compare some of these texts.

mod gateway;
mod rpc;

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use belljar_core::{CoreError, ErrorClass, VolumeError, chain};
use belljar_http::Problem;
use belljar_types::{Invalid, escape_untrusted};

pub(crate) use gateway::{bad_target, port_closed, sandbox_gone};
pub(crate) use rpc::{Code, RpcError, says_no_such_user};

/// A refusal of the control plane or of `/files`.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    message: String,
    retry_after: Option<Duration>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), retry_after: None }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, message)
    }

    /// The words that E2B itself uses: its clients show them.
    pub(crate) fn no_sandbox(id: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            format!("sandbox \"{}\" doesn't exist or you don't have access to it", escape_untrusted(id.as_bytes())),
        )
    }

    pub(crate) fn no_template(name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("template '{}' not found", escape_untrusted(name.as_bytes())))
    }

    /// Its status and message, for an answer that has more than one of them.
    pub(crate) fn told(self) -> (u16, String) {
        (self.status.as_u16(), self.message)
    }

    /// What this server does not do. 501, which no client takes for success or tries again.
    pub(crate) fn unsupported(what: &str) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, format!("{what} is not supported by this host"))
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "code": self.status.as_u16(), "message": self.message });
        let mut response = (self.status, Json(body)).into_response();
        if let Some(after) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(after.as_secs().max(1)));
        }
        response
    }
}

impl From<CoreError> for ApiError {
    fn from(error: CoreError) -> Self {
        let status = match (&error, error.class()) {
            (CoreError::NoSandbox { id } | CoreError::Ended { id, .. }, _) => return Self::no_sandbox(id.as_str()),
            (CoreError::NoTemplate { name }, _) => return Self::no_template(name.as_str()),
            (CoreError::NoVolume { name }, _) => return Self::new(StatusCode::NOT_FOUND, format!("volume '{name}' not found")),
            (CoreError::Volume(VolumeError::Full { .. }), _) => StatusCode::INSUFFICIENT_STORAGE,
            (CoreError::NoSnapshot { name }, _) => return Self::no_template(name),
            (_, ErrorClass::Invalid) => StatusCode::BAD_REQUEST,
            (_, ErrorClass::Forbidden) => StatusCode::FORBIDDEN,
            (_, ErrorClass::NotFound) => StatusCode::NOT_FOUND,
            (_, ErrorClass::Conflict) => StatusCode::CONFLICT,
            (_, ErrorClass::Quota) => StatusCode::TOO_MANY_REQUESTS,
            (_, ErrorClass::Busy | ErrorClass::Unavailable) => StatusCode::SERVICE_UNAVAILABLE,
            (_, ErrorClass::Unsupported) => StatusCode::NOT_IMPLEMENTED,
            (_, ErrorClass::Internal) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        if status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(code = error.code(), causes = chain(&error), "an E2B request failed");
        }
        let message = error.invalid().map_or_else(|| error.to_string(), Invalid::to_string);
        Self { status, message, retry_after: error.retry_after() }
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        Self { status: problem.status(), message: problem.detail().to_owned(), retry_after: None }
    }
}

impl From<Invalid> for ApiError {
    fn from(invalid: Invalid) -> Self {
        Self::bad_request(invalid.to_string())
    }
}
