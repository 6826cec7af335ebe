//! Refusals of the daemon's calls, in Connect's codes.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use belljar_core::{CoreError, GuestError, Session};
use belljar_types::UserName;

use super::sandbox_gone;

/// Connect's codes, as far as they are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    InvalidArgument,
    DeadlineExceeded,
    NotFound,
    AlreadyExists,
    PermissionDenied,
    ResourceExhausted,
    FailedPrecondition,
    Unimplemented,
    Internal,
    Unavailable,
    DataLoss,
    Unauthenticated,
}

impl Code {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::NotFound => "not_found",
            Self::AlreadyExists => "already_exists",
            Self::PermissionDenied => "permission_denied",
            Self::ResourceExhausted => "resource_exhausted",
            Self::FailedPrecondition => "failed_precondition",
            Self::Unimplemented => "unimplemented",
            Self::Internal => "internal",
            Self::Unavailable => "unavailable",
            Self::DataLoss => "data_loss",
            Self::Unauthenticated => "unauthenticated",
        }
    }

    /// The status of a call that is not a stream.
    fn status(self) -> StatusCode {
        match self {
            Self::InvalidArgument | Self::FailedPrecondition => StatusCode::BAD_REQUEST,
            Self::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::AlreadyExists => StatusCode::CONFLICT,
            Self::PermissionDenied => StatusCode::FORBIDDEN,
            Self::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
            Self::Unimplemented => StatusCode::NOT_IMPLEMENTED,
            Self::Internal | Self::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
        }
    }
}

/// Why a call was not done.
#[derive(Debug)]
pub(crate) enum RpcError {
    /// Told in Connect's words.
    Refused {
        /// What kind.
        code: Code,
        /// For people.
        message: String,
    },
    /// The sandbox is no longer there: told as the gateway does.
    Gone {
        /// Which.
        id: String,
    },
}

impl RpcError {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self::Refused { code, message: message.into() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    pub(crate) fn unknown_user(name: &str) -> Self {
        Self::new(Code::Unauthenticated, format!("invalid username: '{}'", belljar_types::escape_untrusted(name.as_bytes())))
    }

    /// What the agent said, or that the sandbox ended.
    pub(crate) async fn of_guest(session: &Session, user: Option<&UserName>, error: GuestError) -> Self {
        if says_no_such_user(&error) {
            return Self::unknown_user(user.map_or(UserName::DEFAULT, UserName::as_str));
        }
        match session.explain(error).await {
            CoreError::Ended { id, .. } => Self::Gone { id: id.to_string() },
            CoreError::Guest(error) => Self::of_errno(&error),
            other => Self::new(Code::Unavailable, other.to_string()),
        }
    }

    fn of_errno(error: &GuestError) -> Self {
        match error {
            GuestError::Invalid(invalid) => Self::invalid(invalid.to_string()),
            GuestError::Refused { errno, message, .. } => Self::new(code_of(*errno), message.clone()),
            GuestError::NoProcess { .. } => Self::new(Code::NotFound, error.to_string()),
            GuestError::TooOld { .. } => Self::new(Code::Unimplemented, error.to_string()),
            other => Self::new(Code::Unavailable, other.to_string()),
        }
    }

    /// As the end of a stream, or nothing if the stream must be cut.
    pub(crate) fn end_of_stream(&self) -> Option<serde_json::Value> {
        match self {
            Self::Refused { code, message } => Some(serde_json::json!({ "error": { "code": code.as_str(), "message": message } })),
            Self::Gone { .. } => None,
        }
    }
}

/// The agent has no number for this: it is no error of the kernel's.
pub(crate) fn says_no_such_user(error: &GuestError) -> bool {
    matches!(error, GuestError::Refused { errno: 0, message, .. } if message.starts_with("the sandbox has no user "))
}

/// Linux's numbers, in Connect's words.
fn code_of(errno: i32) -> Code {
    match errno {
        2 => Code::NotFound,
        1 | 13 | 30 => Code::PermissionDenied,
        17 => Code::AlreadyExists,
        20 | 21 | 22 | 36 => Code::InvalidArgument,
        39 | 40 => Code::FailedPrecondition,
        11 | 12 | 28 | 122 => Code::ResourceExhausted,
        _ => Code::Internal,
    }
}

impl IntoResponse for RpcError {
    fn into_response(self) -> Response {
        match self {
            Self::Refused { code, message } => {
                let body = serde_json::json!({ "code": code.as_str(), "message": message });
                (code.status(), Json(body)).into_response()
            }
            Self::Gone { id } => sandbox_gone(&id),
        }
    }
}
