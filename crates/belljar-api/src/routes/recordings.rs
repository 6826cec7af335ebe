//! Recorded terminals, which outlive their sandboxes.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use belljar_http::Problem;

use crate::dto::{RecordingList, RecordingView};
use crate::errors::Problems;
use crate::extract::{Named, Process};
use crate::state::ApiState;
use crate::translate::moment;

/// List recordings.
///
/// The recorded terminals of a sandbox, whether it lives or not. There are none where the operator does not have them recorded.
#[utoipa::path(
    get, path = "/v1/sandboxes/{id}/recordings", tag = "audit", operation_id = "listRecordings",
    params(("id" = String, Path, description = "The sandbox")),
    responses((status = 200, description = "Oldest first.", body = RecordingList), Problems)
)]
pub(crate) async fn list(State(state): State<ApiState>, sandbox: Named) -> Result<Json<RecordingList>, Problem> {
    let tapes = state.service.recordings(&sandbox.caller, &sandbox.id).await?;
    let view = |tape: belljar_core::TapeInfo| RecordingView {
        process: tape.process.to_string(),
        began_at: moment(tape.began_at),
        bytes: tape.bytes,
    };
    Ok(Json(RecordingList { recordings: tapes.into_iter().map(view).collect() }))
}

/// Fetch a recording.
///
/// As asciicast of version 2: a line of JSON about the terminal, then a line for whatever it showed. What programs showed is as they wrote it,
/// with every escape.
#[utoipa::path(
    get, path = "/v1/sandboxes/{id}/recordings/{process}", tag = "audit", operation_id = "fetchRecording",
    params(("id" = String, Path, description = "The sandbox"), ("process" = String, Path, description = "The process whose terminal it is")),
    responses((status = 200, description = "The recording.", body = String, content_type = "application/x-asciicast"), Problems)
)]
pub(crate) async fn fetch(State(state): State<ApiState>, sandbox: Named, Process(process): Process) -> Result<Response, Problem> {
    let tape = state.service.recording(&sandbox.caller, &sandbox.id, &process).await?;
    Ok(([(header::CONTENT_TYPE, "application/x-asciicast"), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")], tape).into_response())
}
