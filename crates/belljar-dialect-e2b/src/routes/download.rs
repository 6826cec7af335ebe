//! `GET /files`: a file or a piece of it, packed if the client likes that. Files are read to their end, whatever their size says.

use std::io::Write as _;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use belljar_core::{FileContent, Session};
use belljar_http::{at_most, base_name};
use belljar_types::{ByteRange, FileInfo, UserName, escape_untrusted};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::{StreamExt, stream};

use super::daemon::Sandboxed;
use super::entries::as_daemon;
use super::extract::Asked;
use super::signature::FileQuery;
use super::upload::{FileError, admit, of_guest};
use crate::errors::ApiError;
use crate::state::E2bState;
use crate::translate::{Encoding, Wanted, content_type, disposition, encoding, guest_path, wanted};

/// `GET /files`.
pub(super) async fn read(
    State(state): State<E2bState>,
    Sandboxed(inside): Sandboxed,
    Asked(query): Asked<FileQuery>,
    headers: HeaderMap,
) -> Result<Response, FileError> {
    let session = &inside.session;
    let user = admit(&state, session, inside.shown, &query, &Method::GET)?;
    let asked = query.path.as_deref().unwrap_or_default();
    let path = guest_path(asked).map_err(|_| bad_path(asked))?;
    let conditional = [header::RANGE, header::IF_MODIFIED_SINCE, header::IF_NONE_MATCH, header::IF_RANGE];
    let whole = !conditional.iter().any(|name| headers.contains_key(name));
    let encoding = encoding(&headers, whole)
        .ok_or_else(|| ApiError::new(StatusCode::NOT_ACCEPTABLE, "no acceptable encoding found, supported: [gzip]"))?;
    let open = |range: ByteRange| {
        as_daemon(session, user.as_ref(), &path, move |path, user| async move { session.read_file(&path, range, user.as_ref()).await })
    };

    let mut wanted = wanted(&headers);
    if let Wanted::Last(count) = wanted {
        let size = opened(session, user.as_ref(), open(ByteRange { offset: 0, length: Some(0) }).await).await?.info.size;
        wanted = Wanted::From(size.saturating_sub(count), None);
    }
    let range = match wanted {
        Wanted::From(offset, last) => ByteRange { offset, length: last.map(|last| (last - offset).saturating_add(1)) },
        Wanted::All | Wanted::Last(_) => ByteRange::default(),
    };
    let content = opened(session, user.as_ref(), open(range).await).await?;
    let common = common_headers(asked, &content.info);
    if not_modified(&headers, &content.info) {
        return Ok((StatusCode::NOT_MODIFIED, common).into_response());
    }
    Ok(match wanted {
        Wanted::From(offset, _) if offset >= content.info.size && content.info.size > 0 => {
            (StatusCode::RANGE_NOT_SATISFIABLE, [(header::CONTENT_RANGE, format!("bytes */{}", content.info.size))]).into_response()
        }
        Wanted::From(offset, last) if content.info.size > 0 => piece(content, offset, last, common),
        _ if encoding == Encoding::Gzip => {
            let packed = pack(content);
            ([(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))], common, Body::from_stream(packed)).into_response()
        }
        _ => all(content, common).await,
    })
}

fn bad_path(asked: &str) -> ApiError {
    ApiError::bad_request(format!("error expanding and resolving path '{}'", escape_untrusted(asked.as_bytes())))
}

async fn opened(
    session: &Session,
    user: Option<&UserName>,
    opened: Result<FileContent, belljar_core::GuestError>,
) -> Result<FileContent, FileError> {
    match opened {
        Ok(content) => Ok(content),
        Err(error) => Err(of_guest(session, user, error).await),
    }
}

fn common_headers(asked: &str, info: &FileInfo) -> HeaderMap {
    let name = base_name(asked);
    let mut headers = HeaderMap::new();
    let mut set = |header: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(header, value);
        }
    };
    set(header::VARY, "Accept-Encoding");
    set(header::ACCEPT_RANGES, "bytes");
    set(header::CONTENT_TYPE, content_type(name));
    set(header::CONTENT_DISPOSITION, &disposition(name));
    if let Some(at) = modified(info) {
        set(header::LAST_MODIFIED, &jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&at).unwrap_or_default());
    }
    headers
}

fn modified(info: &FileInfo) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_second(info.modified_nanos.div_euclid(1_000_000_000)).ok()
}

fn not_modified(headers: &HeaderMap, info: &FileInfo) -> bool {
    let since = headers.get(header::IF_MODIFIED_SINCE).and_then(|value| value.to_str().ok());
    let since = since.and_then(|text| jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok());
    !headers.contains_key(header::IF_NONE_MATCH) && since.zip(modified(info)).is_some_and(|(since, modified)| modified <= since)
}

fn piece(content: FileContent, offset: u64, last: Option<u64>, common: HeaderMap) -> Response {
    let size = content.info.size;
    let last = last.unwrap_or(u64::MAX).min(size - 1);
    let length = last - offset + 1;
    let headers = [(header::CONTENT_RANGE, format!("bytes {offset}-{last}/{size}")), (header::CONTENT_LENGTH, length.to_string())];
    (StatusCode::PARTIAL_CONTENT, common, headers, Body::from_stream(at_most(content.bytes, length))).into_response()
}

/// A file that grows meanwhile is cut where its size said; one of size 0 may have content all the same, as files in /proc do.
async fn all(mut content: FileContent, common: HeaderMap) -> Response {
    let size = content.info.size;
    if size > 0 {
        return (common, [(header::CONTENT_LENGTH, size)], Body::from_stream(at_most(content.bytes, size))).into_response();
    }
    match content.bytes.next().await {
        None => (common, [(header::CONTENT_LENGTH, 0)], Body::empty()).into_response(),
        Some(first) => (common, Body::from_stream(stream::once(async { first }).chain(content.bytes))).into_response(),
    }
}

fn pack(content: FileContent) -> impl futures_util::Stream<Item = std::io::Result<Bytes>> + Send {
    let packer = GzEncoder::new(Vec::new(), Compression::fast());
    stream::unfold(Some((content.bytes, packer)), |state| async move {
        let (mut bytes, mut packer) = state?;
        loop {
            match bytes.next().await {
                None => return Some((packer.finish().map(Bytes::from), None)),
                Some(Err(error)) => return Some((Err(std::io::Error::other(error)), None)),
                Some(Ok(piece)) => {
                    if let Err(error) = packer.write_all(&piece) {
                        return Some((Err(error), None));
                    }
                    let packed = std::mem::take(packer.get_mut());
                    if !packed.is_empty() {
                        return Some((Ok(Bytes::from(packed)), Some((bytes, packer))));
                    }
                }
            }
        }
    })
}
