//! A process over a WebSocket: its output down, its input, signals and the size of its terminal up. The messages are in
//! `docs/reference/websocket.md`.

use axum::extract::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::StatusCode;
use axum::response::Response;
use belljar_http::{Problem, QueryOf};
use belljar_types::Offsets;

use super::processes::known;
use crate::dto::OutputQuery;
use crate::errors::Problems;
use crate::extract::{Opened, Process};
use crate::stream::Socket;

/// The largest message: a piece of standard input and its head.
const LARGEST_MESSAGE: usize = (1 << 20) + 9;

fn upgrade(asked: Result<WebSocketUpgrade, WebSocketUpgradeRejection>) -> Result<WebSocketUpgrade, Problem> {
    let detail = "this is a WebSocket: send `Connection: upgrade` and `Upgrade: websocket`";
    let asked = asked.map_err(|_| Problem::new(StatusCode::UPGRADE_REQUIRED, "upgrade_required", detail))?;
    Ok(asked.max_message_size(LARGEST_MESSAGE).max_frame_size(LARGEST_MESSAGE).write_buffer_size(0).max_write_buffer_size(4 << 20))
}

/// Attach to a process over a WebSocket.
///
/// Reads on from the offsets given; any number may be attached.
#[utoipa::path(
    get, path = "/v1/sandboxes/{id}/processes/{process}/ws", tag = "processes", operation_id = "attachWebSocket",
    params(("id" = String, Path, description = "The sandbox"), ("process" = String, Path, description = "The process"), OutputQuery),
    responses(
        (status = 101, description = "The connection is a WebSocket now."),
        (status = 426, description = "The request was no WebSocket's."),
        Problems
    )
)]
pub(crate) async fn attach(
    sandbox: Opened,
    Process(process): Process,
    QueryOf(query): QueryOf<OutputQuery>,
    asked: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let asked = upgrade(asked)?;
    let from = Offsets { stdout: query.stdout.unwrap_or(0), stderr: query.stderr.unwrap_or(0) };
    let info = known(&sandbox, &process).await?;
    let events = sandbox.ask(sandbox.session.attach(&info.id, from)).await?;
    Ok(asked.on_upgrade(move |socket| Socket::attached(socket, sandbox.session, info, events)))
}

/// Start a process over a WebSocket.
///
/// The first message says which: `{"type":"start", …}` with the fields of a process to start.
#[utoipa::path(
    get, path = "/v1/sandboxes/{id}/ws", tag = "processes", operation_id = "startWebSocket",
    params(("id" = String, Path, description = "The sandbox")),
    responses(
        (status = 101, description = "The connection is a WebSocket now."),
        (status = 426, description = "The request was no WebSocket's."),
        Problems
    )
)]
pub(crate) async fn start(sandbox: Opened, asked: Result<WebSocketUpgrade, WebSocketUpgradeRejection>) -> Result<Response, Problem> {
    let asked = upgrade(asked)?;
    Ok(asked.on_upgrade(move |socket| Socket::start(socket, sandbox.session)))
}
