//! Standard input: written as it comes, at offsets, so that a write that was cut off can be repeated without being taken twice.

use axum::Json;
use axum::body::Body;
use axum::http::StatusCode;
use belljar_http::{Problem, QueryOf};
use futures_util::StreamExt;

use super::processes::known;
use crate::dto::{StdinQuery, StdinResult};
use crate::errors::Problems;
use crate::extract::{Opened, Process};

/// Write to its standard input.
///
/// The body as it is, of any length. Answers when all was taken; a process that does not read slows the writer.
#[utoipa::path(
    post, path = "/v1/sandboxes/{id}/processes/{process}/stdin", tag = "processes", operation_id = "writeStdin",
    params(("id" = String, Path, description = "The sandbox"), ("process" = String, Path, description = "The process"), StdinQuery),
    request_body(content = String, content_type = "application/octet-stream", description = "The bytes"),
    responses((status = 200, description = "All was taken.", body = StdinResult), Problems)
)]
pub(crate) async fn write(
    sandbox: Opened,
    Process(process): Process,
    QueryOf(query): QueryOf<StdinQuery>,
    body: Body,
) -> Result<Json<StdinResult>, Problem> {
    let mut offset = match query.offset {
        Some(offset) => offset,
        None => known(&sandbox, &process).await?.stdin_offset,
    };
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "body_cut_short", "the body ended before it was complete"))?;
        let length = piece.len() as u64;
        sandbox.ask(sandbox.session.write_stdin(&process, offset, piece)).await?;
        offset = offset.saturating_add(length);
    }
    Ok(Json(StdinResult { stdin_offset: offset }))
}

/// End its standard input.
#[utoipa::path(
    delete, path = "/v1/sandboxes/{id}/processes/{process}/stdin", tag = "processes", operation_id = "closeStdin",
    params(("id" = String, Path, description = "The sandbox"), ("process" = String, Path, description = "The process")),
    responses((status = 204, description = "It reads end of file."), Problems)
)]
pub(crate) async fn close(sandbox: Opened, Process(process): Process) -> Result<StatusCode, Problem> {
    sandbox.ask(sandbox.session.close_stdin(&process)).await?;
    Ok(StatusCode::NO_CONTENT)
}
