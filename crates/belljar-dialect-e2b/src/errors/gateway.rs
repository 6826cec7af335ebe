//! What E2B's proxy says when it cannot reach a sandbox or a port of it. SDKs take the 502 for "not running" and look for these words.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use belljar_types::escape_untrusted;

/// No such sandbox, or it has ended.
pub(crate) fn sandbox_gone(id: &str) -> Response {
    let id = escape_untrusted(id.as_bytes());
    answer(StatusCode::BAD_GATEWAY, serde_json::json!({ "sandboxId": id, "message": "The sandbox was not found", "code": 502 }))
}

/// Nothing listens on that port.
pub(crate) fn port_closed(id: &str, port: u16) -> Response {
    let body = serde_json::json!({ "sandboxId": id, "message": "The sandbox is running but port is not open", "port": port, "code": 502 });
    answer(StatusCode::BAD_GATEWAY, body)
}

/// The request names no sandbox and port in a form that can be understood.
pub(crate) fn bad_target(message: &str) -> Response {
    answer(StatusCode::BAD_REQUEST, serde_json::json!({ "message": message, "code": 400 }))
}

fn answer(status: StatusCode, body: serde_json::Value) -> Response {
    (status, Json(body)).into_response()
}
