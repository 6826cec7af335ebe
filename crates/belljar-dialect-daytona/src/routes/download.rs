//! Files that are fetched: one as it is, or several as the parts of a form, each read as it is sent.

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use belljar_core::{FileContent, GuestError};
use belljar_http::{JsonBody, QueryOf, at_most};
use belljar_types::{ByteRange, FileKind, ProcessId};
use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};

use super::inside::Inside;
use super::sandboxes::Answer;
use crate::dto::{DownloadPaths, FileQuery};
use crate::errors::{ApiError, document_of_daemon};
use crate::stream::{PART_END, part_head, part_of_error};

const MOST_FILES: usize = 10_000;

type Bytestream = BoxStream<'static, Result<Bytes, GuestError>>;

/// `GET /files/download`.
pub(super) async fn one(inside: Inside, QueryOf(query): QueryOf<FileQuery>) -> Answer<Response> {
    let content = open(&inside, query.path.as_deref().unwrap_or_default()).await?;
    let size = content.info.size;
    let headers = [(header::CONTENT_TYPE, "application/octet-stream"), (header::CACHE_CONTROL, "no-store")];
    if size == 0 {
        // Files of the kernel's say that they have nothing.
        return Ok((headers, Body::from_stream(content.bytes)).into_response());
    }
    Ok((headers, [(header::CONTENT_LENGTH, size)], Body::from_stream(at_most(content.bytes, size))).into_response())
}

async fn open(inside: &Inside, path: &str) -> Answer<FileContent> {
    let path = inside.path(path)?;
    let opened = inside.session.read_file(&path, ByteRange::default(), inside.user()).await;
    let content = inside.done(opened).await?;
    match content.info.kind {
        FileKind::Directory => Err(ApiError::bad_request("invalid file path: path points to a directory").with_code("INVALID_FILE_PATH")),
        _ => Ok(content),
    }
}

/// `POST /files/bulk-download`: a file that cannot be read is a part that says why.
pub(super) async fn several(inside: Inside, JsonBody(request): JsonBody<DownloadPaths>) -> Answer<Response> {
    if request.paths.is_empty() || request.paths.len() > MOST_FILES {
        return Err(ApiError::bad_request(format!("request body must be {{\"paths\": [ ... ]}} with 1 to {MOST_FILES} paths")));
    }
    // No file can hold a boundary that was not there when it was written.
    let boundary = ProcessId::random().to_string();
    let kind = format!("multipart/form-data; boundary={boundary}");
    let end = Bytes::from(format!("--{boundary}--\r\n"));
    let parts = stream::iter(request.paths).then(move |path| {
        let (session, user, state, boundary) = (inside.session.clone(), inside.user.clone(), inside.state.clone(), boundary.clone());
        async move {
            let inside = Inside { session, user, state };
            part(&boundary, &path, open(&inside, &path).await)
        }
    });
    let body = parts.flatten().chain(stream::iter([Ok(end)]));
    Ok(([(header::CONTENT_TYPE, kind)], Body::from_stream(body)).into_response())
}

fn part(boundary: &str, path: &str, content: Answer<FileContent>) -> Bytestream {
    match content {
        Ok(content) => {
            let size = content.info.size;
            let head = part_head(boundary, "file", path, "application/octet-stream", (size > 0).then_some(size));
            stream::iter([Ok(head)])
                .chain(if size == 0 { content.bytes } else { whole(content, size) })
                .chain(stream::iter([Ok(Bytes::from_static(PART_END))]))
                .boxed()
        }
        Err(error) => stream::iter([Ok(part_of_error(boundary, path, &document_of_daemon(&error, path)))]).boxed(),
    }
}

/// As many bytes as were said. A file that became shorter meanwhile breaks the answer off: it would be taken for a whole one.
fn whole(content: FileContent, size: u64) -> Bytestream {
    let short = move |sent: u64| GuestError::Lost {
        operation: "read a file",
        source: std::io::Error::other(format!("it became shorter while it was read: {sent} of {size} bytes")),
    };
    let sent = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = std::sync::Arc::clone(&sent);
    let bytes = at_most(content.bytes, size).inspect_ok(move |piece| {
        counted.fetch_add(piece.len() as u64, std::sync::atomic::Ordering::Relaxed);
    });
    let end = stream::once(async move {
        match sent.load(std::sync::atomic::Ordering::Relaxed) {
            all if all == size => Ok(Bytes::new()),
            sent => Err(short(sent)),
        }
    });
    bytes.chain(end).boxed()
}
