//! Archives of templates: received into a file on disk as they come, never into memory, and removed when the template is made or not.

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use belljar_core::TemplateSource;
use belljar_http::{Authenticated, PathOf, Problem, QueryOf};
use belljar_types::Scope;
use futures_util::StreamExt;
use tempfile::TempPath;
use tokio::io::AsyncWriteExt;

use super::templates::{make_from, new_name};
use crate::dto::{BuildLineView, TemplateQuery};
use crate::errors::Problems;
use crate::state::ApiState;

/// Make a template from an archive.
///
/// A root filesystem as a tarball, an OCI layout as tar, or what `docker save` wrote; told apart by content.
#[utoipa::path(
    put, path = "/v1/templates/{name}/archive", tag = "templates", operation_id = "uploadTemplate",
    params(("name" = String, Path, description = "The template", example = "mine"), TemplateQuery),
    request_body(content = String, content_type = "application/octet-stream", description = "The archive"),
    responses((status = 200, description = "What is being done.", content((BuildLineView = "application/x-ndjson"))), Problems)
)]
pub(crate) async fn upload(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(name): PathOf<String>,
    QueryOf(query): QueryOf<TemplateQuery>,
    body: Body,
) -> Result<Response, Problem> {
    let name = new_name(&name)?;
    caller.require(if query.shared { Scope::Admin } else { Scope::Templates })?;
    let archive = receive(&state, body).await?;
    let source = TemplateSource::Archive(archive.to_path_buf());
    Ok(make_from(&state, caller, name, source, query.shared, archive))
}

/// The body as a file that is removed when it is dropped.
async fn receive(state: &ApiState, body: Body) -> Result<TempPath, Problem> {
    let failed = |error: std::io::Error| Problem::internal("the archive could not be kept on the server's disk", error);
    tokio::fs::create_dir_all(&state.upload_directory).await.map_err(failed)?;
    let (file, path) = tempfile::Builder::new().prefix("upload-").tempfile_in(&state.upload_directory).map_err(failed)?.into_parts();
    let mut file = tokio::fs::File::from_std(file);
    let (mut received, limit) = (0_u64, state.max_upload_bytes);
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece =
            piece.map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "body_cut_short", "the archive ended before it was complete"))?;
        received = received.saturating_add(piece.len() as u64);
        if received > limit {
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", format!("an archive may have {limit} bytes at most")));
        }
        file.write_all(&piece).await.map_err(failed)?;
    }
    if received == 0 {
        return Err(Problem::invalid("body", "body: expected an archive, got nothing"));
    }
    file.flush().await.map_err(failed)?;
    Ok(path)
}
