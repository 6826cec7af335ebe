//! The content of volumes, without a sandbox: streamed both ways, in constant memory. Links in a volume are told, never followed.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use belljar_core::{ContentStream, VolumeFile};
use belljar_http::{Authenticated, JsonBody, PathOf, Problem, QueryOf};
use belljar_types::{ByteRange, Invalid, VolumeWrite};
use futures_util::StreamExt;

use super::files::{content, no_such_bytes};
use super::volumes::Which;
use crate::dto::{FileList, FileView, VolumeEntryRequest, VolumeListQuery, VolumeMoveRequest, VolumePathQuery, VolumeWriteQuery};
use crate::errors::Problems;
use crate::state::ApiState;
use crate::translate::{self, Wanted, volume_path};

/// Read a file of a volume.
///
/// All of it, or one `Range` of bytes.
#[utoipa::path(
    get, path = "/v1/volumes/{volume}/files", tag = "volumes", operation_id = "readVolumeFile",
    params(("volume" = String, Path, description = "Its id or name"), VolumePathQuery,
        ("Range" = Option<String>, Header, description = "One range of bytes", example = "bytes=0-99")),
    responses(
        (status = 200, description = "The file.", body = String, content_type = "application/octet-stream"),
        (status = 206, description = "A piece of it.", body = String, content_type = "application/octet-stream"),
        (status = 416, description = "The file has no such bytes; `Content-Range` has its size."),
        Problems
    )
)]
pub(crate) async fn read(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(Which { volume }): PathOf<Which>,
    QueryOf(query): QueryOf<VolumePathQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let path = volume_path("path", &query.path)?;
    let wanted = translate::wanted_by(&headers);
    let range = match wanted {
        Wanted::All => ByteRange::default(),
        Wanted::From(range) => range,
        Wanted::Last(count) => {
            let size = state.service.volume_entry(&caller, &volume, &path).await?.size;
            if count == 0 {
                return Ok(no_such_bytes(size));
            }
            ByteRange { offset: size.saturating_sub(count), length: None }
        }
    };
    let VolumeFile { entry, content: bytes } = state.service.read_volume(&caller, &volume, &path, range).await?;
    if let Wanted::All = wanted {
        return Ok(content((), StatusCode::OK, Some(entry.size), None, bytes));
    }
    if range.offset >= entry.size {
        return Ok(no_such_bytes(entry.size));
    }
    let length = range.length.unwrap_or(u64::MAX).min(entry.size - range.offset);
    let span = format!("bytes {}-{}/{}", range.offset, range.offset + length - 1, entry.size);
    Ok(content((), StatusCode::PARTIAL_CONTENT, Some(length), Some(span), bytes))
}

/// Write a file of a volume.
///
/// The body as it is, of any length. Until all of it is there, whoever looks sees what was there before. With `If-None-Match: *`, a file that is
/// there is left alone (409).
#[utoipa::path(
    put, path = "/v1/volumes/{volume}/files", tag = "volumes", operation_id = "writeVolumeFile",
    params(("volume" = String, Path, description = "Its id or name"), VolumeWriteQuery,
        ("If-None-Match" = Option<String>, Header, description = "`*`: only if there is no such file", example = "*")),
    request_body(content = String, content_type = "application/octet-stream", description = "The bytes"),
    responses((status = 200, description = "It was written.", body = FileView), Problems)
)]
pub(crate) async fn write(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(Which { volume }): PathOf<Which>,
    QueryOf(query): QueryOf<VolumeWriteQuery>,
    request: Request,
) -> Result<Json<FileView>, Problem> {
    let overwrite = match request.headers().get(header::IF_NONE_MATCH).map(HeaderValue::as_bytes) {
        None => true,
        Some(b"*") => false,
        Some(_) => return Err(Problem::invalid("If-None-Match", "If-None-Match: only `*` is understood")),
    };
    let change = translate::entry_change(query.mode.as_deref(), query.uid, query.gid)?;
    let options = VolumeWrite { change, overwrite, make_parents: query.parents };
    let pieces: ContentStream = Box::pin(request.into_body().into_data_stream().map(|piece| piece.map_err(std::io::Error::other)));
    let path = volume_path("path", &query.path)?;
    let entry = state.service.write_volume(&caller, &volume, &path, options, pieces).await?;
    Ok(Json(translate::entry_view(&entry)))
}

/// Remove a file of a volume, or a directory with all it holds.
#[utoipa::path(
    delete, path = "/v1/volumes/{volume}/files", tag = "volumes", operation_id = "removeVolumeFile",
    params(("volume" = String, Path, description = "Its id or name"), VolumePathQuery),
    responses((status = 204, description = "It is gone."), Problems)
)]
pub(crate) async fn remove(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(Which { volume }): PathOf<Which>,
    QueryOf(query): QueryOf<VolumePathQuery>,
) -> Result<StatusCode, Problem> {
    state.service.remove_volume_entry(&caller, &volume, &volume_path("path", &query.path)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Change permissions or owner of something in a volume.
#[utoipa::path(
    patch, path = "/v1/volumes/{volume}/files", tag = "volumes", operation_id = "changeVolumeFile",
    params(("volume" = String, Path, description = "Its id or name")), request_body = VolumeEntryRequest,
    responses((status = 200, description = "As it is now.", body = FileView), Problems)
)]
pub(crate) async fn change(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(Which { volume }): PathOf<Which>,
    JsonBody(request): JsonBody<VolumeEntryRequest>,
) -> Result<Json<FileView>, Problem> {
    let change = translate::entry_change(request.mode.as_deref(), request.uid, request.gid)?;
    if change == belljar_types::EntryChange::default() {
        return Err(Invalid::new("mode", "something to change: mode, uid or gid", "").into());
    }
    let path = volume_path("path", &request.path)?;
    Ok(Json(translate::entry_view(&state.service.change_volume_entry(&caller, &volume, &path, change).await?)))
}

/// Ask what is at a path of a volume.
#[utoipa::path(
    get, path = "/v1/volumes/{volume}/files/stat", tag = "volumes", operation_id = "statVolumeFile",
    params(("volume" = String, Path, description = "Its id or name"), VolumePathQuery),
    responses((status = 200, description = "What is there; a link itself, not what it points to.", body = FileView), Problems)
)]
pub(crate) async fn stat(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(Which { volume }): PathOf<Which>,
    QueryOf(query): QueryOf<VolumePathQuery>,
) -> Result<Json<FileView>, Problem> {
    let entry = state.service.volume_entry(&caller, &volume, &volume_path("path", &query.path)?).await?;
    Ok(Json(translate::entry_view(&entry)))
}

/// List a directory of a volume.
#[utoipa::path(
    get, path = "/v1/volumes/{volume}/files/list", tag = "volumes", operation_id = "listVolumeFiles",
    params(("volume" = String, Path, description = "Its id or name"), VolumeListQuery),
    responses((status = 200, description = "What it holds, by path.", body = FileList), Problems)
)]
pub(crate) async fn list(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(Which { volume }): PathOf<Which>,
    QueryOf(query): QueryOf<VolumeListQuery>,
) -> Result<Json<FileList>, Problem> {
    let depth = translate::bounded("depth", query.depth, 1, 1, 64)?;
    let limit = translate::bounded("max_entries", query.max_entries, 10_000, 1, 100_000)?;
    let path = volume_path("path", &query.path)?;
    let entries = state.service.volume_entries(&caller, &volume, &path, depth, limit).await?;
    Ok(Json(FileList { entries: entries.iter().map(translate::entry_view).collect() }))
}

/// Make a directory in a volume.
///
/// With those above it that are missing. One that is there is left as it is.
#[utoipa::path(
    post, path = "/v1/volumes/{volume}/files/mkdir", tag = "volumes", operation_id = "makeVolumeDirectory",
    params(("volume" = String, Path, description = "Its id or name")), request_body = VolumeEntryRequest,
    responses((status = 200, description = "It is there.", body = FileView), Problems)
)]
pub(crate) async fn make_directory(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(Which { volume }): PathOf<Which>,
    JsonBody(request): JsonBody<VolumeEntryRequest>,
) -> Result<Json<FileView>, Problem> {
    let change = translate::entry_change(request.mode.as_deref(), request.uid, request.gid)?;
    let path = volume_path("path", &request.path)?;
    Ok(Json(translate::entry_view(&state.service.make_volume_directory(&caller, &volume, &path, change, true).await?)))
}

/// Move something within a volume.
#[utoipa::path(
    post, path = "/v1/volumes/{volume}/files/move", tag = "volumes", operation_id = "moveVolumeFile",
    params(("volume" = String, Path, description = "Its id or name")), request_body = VolumeMoveRequest,
    responses((status = 200, description = "It is there now.", body = FileView), Problems)
)]
pub(crate) async fn rename(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(Which { volume }): PathOf<Which>,
    JsonBody(request): JsonBody<VolumeMoveRequest>,
) -> Result<Json<FileView>, Problem> {
    let (from, to) = (volume_path("from", &request.from)?, volume_path("to", &request.to)?);
    Ok(Json(translate::entry_view(&state.service.move_volume_entry(&caller, &volume, &from, &to).await?)))
}
