//! What was not done inside a sandbox, in the words of Daytona's daemon.

use axum::http::StatusCode;
use belljar_core::{CoreError, GuestError, Session};

use super::ApiError;

const NO_SUCH_FILE: i32 = 2;

/// What the agent said, or that the sandbox ended.
pub(crate) async fn of_guest(session: &Session, error: GuestError) -> ApiError {
    match session.explain(error).await {
        CoreError::Guest(error) => of_errno(&error),
        other => other.into(),
    }
}

/// Whether something was looked for and is not there.
pub(crate) fn is_no_such_file(error: &GuestError) -> bool {
    matches!(error, GuestError::Refused { errno: NO_SUCH_FILE, .. })
}

fn of_errno(error: &GuestError) -> ApiError {
    match error {
        GuestError::Invalid(invalid) => invalid.clone().into(),
        GuestError::Refused { errno, message, .. } => {
            let (status, code) = match *errno {
                NO_SUCH_FILE => (StatusCode::NOT_FOUND, "FILE_NOT_FOUND"),
                1 | 13 | 30 => (StatusCode::FORBIDDEN, "FILE_ACCESS_DENIED"),
                17 => (StatusCode::CONFLICT, "CONFLICT"),
                // 0: no error of the kernel's, such as a user who is not there.
                0 | 20 | 21 | 22 | 36 | 39 | 40 => (StatusCode::BAD_REQUEST, "INVALID_FILE_PATH"),
                28 | 122 => (StatusCode::INSUFFICIENT_STORAGE, "NO_SPACE"),
                3 => (StatusCode::GONE, "COMMAND_ALREADY_COMPLETED"),
                _ => (StatusCode::INTERNAL_SERVER_ERROR, "FILE_READ_FAILED"),
            };
            ApiError::new(status, message.clone()).with_code(code)
        }
        GuestError::NoProcess { .. } => ApiError::not_found(error.to_string()).with_code("PROCESS_NOT_FOUND"),
        GuestError::TooOld { .. } => ApiError::new(StatusCode::NOT_IMPLEMENTED, error.to_string()),
        other => ApiError::new(StatusCode::SERVICE_UNAVAILABLE, other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_can_tell_what_is_missing_from_what_is_forbidden() {
        for (errno, status, code) in
            [(2, 404, "FILE_NOT_FOUND"), (13, 403, "FILE_ACCESS_DENIED"), (21, 400, "INVALID_FILE_PATH"), (5, 500, "FILE_READ_FAILED")]
        {
            let error = of_errno(&GuestError::Refused { operation: "open", errno, message: "x".to_owned() });
            assert_eq!((error.status().as_u16(), error.code().as_str()), (status, code), "{errno}");
        }
    }
}
