//! Looking for files by name and content, and replacing text in them.

use axum::Json;
use belljar_core::GuestError;
use belljar_http::{JsonBody, QueryOf};
use belljar_types::{ByteRange, GuestPath, SearchHit, SearchQuery, WriteOptions};
use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::files::follow;
use super::inside::Inside;
use super::sandboxes::Answer;
use crate::dto::{FindQuery, Replace, Replaced};
use crate::errors::ApiError;
use crate::translate::shown_path;

/// The most that is told of what was found.
const MOST_HITS: u32 = 20_000;
/// The largest file in which text is replaced: it is read whole.
const LARGEST_FILE: u64 = 32 << 20;
const MOST_FILES: usize = 1000;

/// `GET /files/find`: lines that hold the pattern as it is written.
pub(super) async fn in_files(inside: Inside, QueryOf(query): QueryOf<FindQuery>) -> Answer<Json<serde_json::Value>> {
    let content = Some(query.pattern.clone().into_bytes());
    let matches = hits(&inside, &query, None, content).await?.into_iter();
    let matches = matches.map(
        |(path, hit)| serde_json::json!({ "file": path, "line": hit.line.unwrap_or(0), "content": String::from_utf8_lossy(&hit.text) }),
    );
    Ok(Json(matches.collect()))
}

/// `GET /files/search`: files whose name fits a shell's pattern.
pub(super) async fn by_name(inside: Inside, QueryOf(query): QueryOf<FindQuery>) -> Answer<Json<serde_json::Value>> {
    let found = hits(&inside, &query, Some(query.pattern.clone()), None).await?;
    Ok(Json(serde_json::json!({ "files": found.into_iter().map(|(path, _)| path).collect::<Vec<_>>() })))
}

async fn hits(inside: &Inside, query: &FindQuery, name: Option<String>, content: Option<Vec<u8>>) -> Answer<Vec<(String, SearchHit)>> {
    if query.path.is_empty() || query.pattern.is_empty() {
        return Err(ApiError::bad_request("path and pattern are required"));
    }
    let root = follow(inside, inside.path(&query.path)?).await?.path;
    let search = SearchQuery { user: inside.user.clone(), root: root.clone(), name, content, max_hits: MOST_HITS };
    let found = inside.session.search(&search).await;
    let mut found = inside.done(found).await?;
    let base = String::from_utf8_lossy(root.as_bytes()).into_owned();
    let mut hits = Vec::new();
    while let Some(hit) = found.next().await {
        let hit = inside.done(hit).await?;
        hits.push((shown_path(&query.path, &base, hit.path.as_bytes()), hit));
    }
    Ok(hits)
}

/// `POST /files/replace`: each file by itself, so that one that cannot be changed does not keep the others from it.
pub(super) async fn replace(inside: Inside, JsonBody(request): JsonBody<Replace>) -> Answer<Json<Vec<Replaced>>> {
    if request.pattern.is_empty() || request.files.len() > MOST_FILES {
        return Err(ApiError::bad_request(format!("expected a pattern, and at most {MOST_FILES} files")));
    }
    let mut told = Vec::new();
    for file in request.files {
        let error = match inside.path(&file) {
            Ok(path) => replace_in(&inside, &path, &request.pattern, request.new_value.as_deref().unwrap_or_default()).await.err(),
            Err(error) => Some(error.message().to_owned()),
        };
        told.push(Replaced { file, success: error.is_none(), error });
    }
    Ok(Json(told))
}

async fn replace_in(inside: &Inside, path: &GuestPath, pattern: &str, with: &str) -> Result<(), String> {
    let told = |error: GuestError| error.to_string();
    let range = ByteRange { offset: 0, length: Some(LARGEST_FILE + 1) };
    let mut content = inside.session.read_file(path, range, inside.user()).await.map_err(told)?;
    let mut text = Vec::new();
    while let Some(piece) = content.bytes.next().await {
        text.extend_from_slice(&piece.map_err(told)?);
        if text.len() as u64 > LARGEST_FILE {
            return Err(format!("it has more than {LARGEST_FILE} bytes"));
        }
    }
    let text = String::from_utf8(text).map_err(|_| "it is no text".to_owned())?;
    let replaced = text.replace(pattern, with);
    if replaced != text {
        let options = WriteOptions { user: inside.user.clone(), ..WriteOptions::default() };
        inside.session.write_file(path, &options, stream::iter([Ok(Bytes::from(replaced))]).boxed()).await.map_err(told)?;
    }
    Ok(())
}
