//! A file's content: streamed both ways, in pieces where asked, in constant memory.

use axum::Json;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use belljar_core::{ByteStream, FileContent, GuestError};
use belljar_http::{Problem, QueryOf};
use belljar_types::{ByteRange, GuestPath, UserName, WriteOptions};
use bytes::Bytes;
use futures_util::{Stream, StreamExt};

use crate::dto::{FileView, PathQuery, WriteQuery};
use crate::errors::Problems;
use crate::extract::Opened;
use crate::translate::{self, Wanted};

fn target(query: PathQuery) -> Result<(GuestPath, Option<UserName>), Problem> {
    Ok((translate::path("path", query.path, query.path_base64)?, translate::user(query.user)?))
}

/// Read a file.
///
/// All of it, or one `Range` of bytes.
#[utoipa::path(
    get, path = "/v1/sandboxes/{id}/files", tag = "files", operation_id = "readFile",
    params(("id" = String, Path, description = "The sandbox"), PathQuery,
        ("Range" = Option<String>, Header, description = "One range of bytes", example = "bytes=0-99")),
    responses(
        (status = 200, description = "The file.", body = String, content_type = "application/octet-stream"),
        (status = 206, description = "A piece of it.", body = String, content_type = "application/octet-stream"),
        (status = 416, description = "The file has no such bytes; `Content-Range` has its size."),
        Problems
    )
)]
pub(crate) async fn read(sandbox: Opened, QueryOf(query): QueryOf<PathQuery>, headers: HeaderMap) -> Result<Response, Problem> {
    let (path, user) = target(query)?;
    let open = async |range: ByteRange| sandbox.ask(sandbox.session.read_file(&path, range, user.as_ref())).await;
    let range = match translate::wanted_by(&headers) {
        Wanted::All => {
            let FileContent { info, bytes } = open(ByteRange::default()).await?;
            // Files that the kernel makes up have no size to tell beforehand.
            return Ok(content(sandbox.session.clone(), StatusCode::OK, (info.size > 0).then_some(info.size), None, bytes));
        }
        Wanted::From(range) => range,
        Wanted::Last(count) => {
            let size = open(ByteRange { offset: 0, length: Some(0) }).await?.info.size;
            if count == 0 {
                return Ok(no_such_bytes(size));
            }
            ByteRange { offset: size.saturating_sub(count), length: None }
        }
    };
    let FileContent { info, bytes } = open(range).await?;
    if range.offset >= info.size {
        return Ok(no_such_bytes(info.size));
    }
    let length = range.length.unwrap_or(u64::MAX).min(info.size - range.offset);
    let span = format!("bytes {}-{}/{}", range.offset, range.offset + length - 1, info.size);
    Ok(content(sandbox.session.clone(), StatusCode::PARTIAL_CONTENT, Some(length), Some(span), bytes))
}

pub(super) fn no_such_bytes(size: u64) -> Response {
    let detail = format!("the file has {size} bytes, and none of those that were asked for");
    let mut response = Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, "range_not_satisfiable", detail).into_response();
    if let Ok(value) = HeaderValue::from_str(&format!("bytes */{size}")) {
        response.headers_mut().insert(header::CONTENT_RANGE, value);
    }
    response
}

/// An answer of exactly `length` bytes if that is known, whatever the file does meanwhile.
pub(super) fn content<E: std::error::Error + Send + Sync + 'static>(
    session: impl Send + 'static,
    status: StatusCode,
    length: Option<u64>,
    span: Option<String>,
    bytes: impl Stream<Item = Result<Bytes, E>> + Send + Unpin + 'static,
) -> Response {
    let left = length.unwrap_or(u64::MAX);
    // The sandbox is in use until all was read.
    let pieces = futures_util::stream::unfold((session, bytes, left), |(session, mut bytes, left)| async move {
        if left == 0 {
            return None;
        }
        let piece = bytes.next().await?;
        let piece = piece.map(|piece| piece.slice(..piece.len().min(usize::try_from(left).unwrap_or(usize::MAX))));
        let left = left.saturating_sub(piece.as_ref().map_or(0, |piece| piece.len() as u64));
        Some((piece, (session, bytes, left)))
    });
    let mut response = (status, Body::from_stream(pieces)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A browser must not run what a sandbox wrote in this server's name.
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(length) = length {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    if let Some(span) = span.and_then(|span| HeaderValue::from_str(&span).ok()) {
        headers.insert(header::CONTENT_RANGE, span);
    }
    response
}

/// Ask for a file's size.
#[utoipa::path(
    head, path = "/v1/sandboxes/{id}/files", tag = "files", operation_id = "headFile",
    params(("id" = String, Path, description = "The sandbox"), PathQuery),
    responses((status = 200, description = "It can be read; `Content-Length` has its size."), Problems)
)]
pub(crate) async fn head(sandbox: Opened, QueryOf(query): QueryOf<PathQuery>) -> Result<Response, Problem> {
    let (path, user) = target(query)?;
    let nothing = ByteRange { offset: 0, length: Some(0) };
    let info = sandbox.ask(sandbox.session.read_file(&path, nothing, user.as_ref())).await?.info;
    let empty: ByteStream = Box::pin(futures_util::stream::empty());
    Ok(content(sandbox.session, StatusCode::OK, Some(info.size), None, empty))
}

/// Write a file.
///
/// The body as it is, of any length, written as it comes. With `If-None-Match: *`, a file that is there is left alone (409).
#[utoipa::path(
    put, path = "/v1/sandboxes/{id}/files", tag = "files", operation_id = "writeFile",
    params(("id" = String, Path, description = "The sandbox"), WriteQuery,
        ("If-None-Match" = Option<String>, Header, description = "`*`: only if there is no such file", example = "*")),
    request_body(content = String, content_type = "application/octet-stream", description = "The bytes"),
    responses((status = 200, description = "It was written.", body = FileView), Problems)
)]
pub(crate) async fn write(sandbox: Opened, QueryOf(query): QueryOf<WriteQuery>, request: Request) -> Result<Json<FileView>, Problem> {
    let path = translate::path("path", query.path, query.path_base64)?;
    let create_new = match request.headers().get(header::IF_NONE_MATCH).map(HeaderValue::as_bytes) {
        None => false,
        Some(b"*") => true,
        Some(_) => return Err(Problem::invalid("If-None-Match", "If-None-Match: only `*` is understood")),
    };
    let options = WriteOptions {
        user: translate::user(query.user)?,
        offset: query.offset,
        mode: query.mode.as_deref().map(translate::mode).transpose()?,
        make_parents: query.parents,
        create_new,
        claim: false,
        tell_attributes: false,
    };
    let pieces: ByteStream = Box::pin(request.into_body().into_data_stream().map(received));
    let info = sandbox.ask(sandbox.session.write_file(&path, &options, pieces)).await?;
    Ok(Json(translate::file_view(&info)))
}

fn received(piece: Result<Bytes, axum::Error>) -> Result<Bytes, GuestError> {
    piece.map_err(|error| GuestError::Lost { operation: "take the body of the request", source: std::io::Error::other(error) })
}

/// Remove a file, or a directory with all it holds.
#[utoipa::path(
    delete, path = "/v1/sandboxes/{id}/files", tag = "files", operation_id = "removeFile",
    params(("id" = String, Path, description = "The sandbox"), PathQuery),
    responses((status = 204, description = "It is gone."), Problems)
)]
pub(crate) async fn remove(sandbox: Opened, QueryOf(query): QueryOf<PathQuery>) -> Result<StatusCode, Problem> {
    let (path, user) = target(query)?;
    sandbox.ask(sandbox.session.remove(&path, user.as_ref())).await?;
    Ok(StatusCode::NO_CONTENT)
}
