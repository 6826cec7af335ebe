//! Everything about files but their content: what there is, how it is called, whose it is, what happens to it.

use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use belljar_core::{CoreError, GuestError, Session};
use belljar_http::{JsonBody, Problem, QueryOf};
use belljar_types::{Invalid, ListOptions};
use futures_util::{Stream, StreamExt};

use crate::dto::{
    AttributeQuery, AttributeValue, ChangeFileRequest, FileLine, FileList, FileView, ListFilesQuery, MakeDirectoryRequest,
    MakeDirectoryResult, MoveRequest, PathQuery, SearchRequest, WatchQuery,
};
use crate::errors::Problems;
use crate::extract::Opened;
use crate::stream::{self, Format, Line};
use crate::translate;

/// What a path is.
///
/// Of a symbolic link, the link itself.
#[utoipa::path(
    get, path = "/v1/sandboxes/{id}/files/stat", tag = "files", operation_id = "statFile",
    params(("id" = String, Path, description = "The sandbox"), PathQuery),
    responses((status = 200, description = "What it is.", body = FileView), Problems)
)]
pub(crate) async fn stat(sandbox: Opened, QueryOf(query): QueryOf<PathQuery>) -> Result<Json<FileView>, Problem> {
    let (path, user) = (translate::path("path", query.path, query.path_base64)?, translate::user(query.user)?);
    let info = sandbox.ask(sandbox.session.stat(&path, user.as_ref())).await?;
    Ok(Json(translate::file_view(&info)))
}

/// What a directory holds.
#[utoipa::path(
    get, path = "/v1/sandboxes/{id}/files/list", tag = "files", operation_id = "listFiles",
    params(("id" = String, Path, description = "The sandbox"), ListFilesQuery),
    responses((status = 200, description = "Its entries.", body = FileList), Problems)
)]
pub(crate) async fn list(sandbox: Opened, QueryOf(query): QueryOf<ListFilesQuery>) -> Result<Json<FileList>, Problem> {
    let path = translate::path("path", query.path, query.path_base64)?;
    let options = ListOptions {
        user: translate::user(query.user)?,
        depth: translate::bounded("depth", query.depth, 1, 1, 64)?,
        max_entries: translate::bounded("max_entries", query.max_entries, 10_000, 1, 100_000)?,
    };
    let entries = sandbox.ask(sandbox.session.list(&path, &options)).await?;
    Ok(Json(FileList { entries: entries.iter().map(translate::file_view).collect() }))
}

/// Make a directory, with its parents.
#[utoipa::path(
    post, path = "/v1/sandboxes/{id}/files/mkdir", tag = "files", operation_id = "makeDirectory",
    params(("id" = String, Path, description = "The sandbox")), request_body = MakeDirectoryRequest,
    responses((status = 200, description = "It is there.", body = MakeDirectoryResult), Problems)
)]
pub(crate) async fn make_directory(
    sandbox: Opened,
    JsonBody(request): JsonBody<MakeDirectoryRequest>,
) -> Result<Json<MakeDirectoryResult>, Problem> {
    let (path, user) = (translate::path("path", request.path, request.path_base64)?, translate::user(request.user)?);
    let created = sandbox.ask(sandbox.session.make_directory(&path, user.as_ref())).await?;
    Ok(Json(MakeDirectoryResult { created }))
}

/// Move a file or a directory.
#[utoipa::path(
    post, path = "/v1/sandboxes/{id}/files/move", tag = "files", operation_id = "moveFile",
    params(("id" = String, Path, description = "The sandbox")), request_body = MoveRequest,
    responses((status = 200, description = "It is there now.", body = FileView), Problems)
)]
pub(crate) async fn rename(sandbox: Opened, JsonBody(request): JsonBody<MoveRequest>) -> Result<Json<FileView>, Problem> {
    let from = translate::path("from", request.from, request.from_base64)?;
    let to = translate::path("to", request.to, request.to_base64)?;
    let user = translate::user(request.user)?;
    let info = sandbox.ask(sandbox.session.rename(&from, &to, user.as_ref())).await?;
    Ok(Json(translate::file_view(&info)))
}

/// Change permissions or owner.
#[utoipa::path(
    patch, path = "/v1/sandboxes/{id}/files", tag = "files", operation_id = "changeFile",
    params(("id" = String, Path, description = "The sandbox")), request_body = ChangeFileRequest,
    responses((status = 200, description = "The file as it is now.", body = FileView), Problems)
)]
pub(crate) async fn change(sandbox: Opened, JsonBody(request): JsonBody<ChangeFileRequest>) -> Result<Json<FileView>, Problem> {
    let (path, user) = (translate::path("path", request.path, request.path_base64)?, translate::user(request.user)?);
    let mode = request.mode.as_deref().map(translate::mode).transpose()?;
    if mode.is_none() && request.uid.is_none() && request.gid.is_none() {
        return Err(Invalid::new("mode", "something to change: mode, uid or gid", "").into());
    }
    // The owner first: a change of owner clears set-user-ID bits that the mode may ask for.
    if request.uid.is_some() || request.gid.is_some() {
        sandbox.ask(sandbox.session.set_owner(&path, request.uid, request.gid, user.as_ref())).await?;
    }
    if let Some(mode) = mode {
        sandbox.ask(sandbox.session.set_mode(&path, mode, user.as_ref())).await?;
    }
    let info = sandbox.ask(sandbox.session.stat(&path, user.as_ref())).await?;
    Ok(Json(translate::file_view(&info)))
}

/// Watch a directory.
///
/// A line `watching` says that the watch is in place; then one line for each thing that happens, until the client leaves.
#[utoipa::path(
    get, path = "/v1/sandboxes/{id}/files/watch", tag = "files", operation_id = "watchFiles",
    params(("id" = String, Path, description = "The sandbox"), WatchQuery),
    responses(
        (status = 200, description = "What happens.", content((FileLine = "application/x-ndjson"), (FileLine = "text/event-stream"))),
        Problems
    )
)]
pub(crate) async fn watch(sandbox: Opened, QueryOf(query): QueryOf<WatchQuery>, headers: HeaderMap) -> Result<Response, Problem> {
    let (path, user) = (translate::path("path", query.path, query.path_base64)?, translate::user(query.user)?);
    let events = sandbox.ask(sandbox.session.watch(&path, query.recursive, user.as_ref())).await?;
    let watching = futures_util::stream::once(std::future::ready(Line::new(&FileLine::Watching)));
    let lines = watching.chain(lines(sandbox.session, events, |event| translate::event_line(&event)));
    Ok(stream::answer(Format::asked(&headers).unwrap_or(Format::Ndjson), &FileLine::Heartbeat, lines))
}

/// Search files.
///
/// By name, and by text in them. Hits come as they are found; a line `done` says that there are no more.
#[utoipa::path(
    get, path = "/v1/sandboxes/{id}/files/search", tag = "files", operation_id = "searchFiles",
    params(("id" = String, Path, description = "The sandbox"), SearchRequest),
    responses(
        (status = 200, description = "What was found.", content((FileLine = "application/x-ndjson"), (FileLine = "text/event-stream"))),
        Problems
    )
)]
pub(crate) async fn search(sandbox: Opened, QueryOf(request): QueryOf<SearchRequest>, headers: HeaderMap) -> Result<Response, Problem> {
    found(sandbox, request, &headers).await
}

/// Search files, asked in a body.
#[utoipa::path(
    post, path = "/v1/sandboxes/{id}/files/search", tag = "files", operation_id = "searchFilesByBody",
    params(("id" = String, Path, description = "The sandbox")), request_body = SearchRequest,
    responses(
        (status = 200, description = "What was found.", content((FileLine = "application/x-ndjson"), (FileLine = "text/event-stream"))),
        Problems
    )
)]
pub(crate) async fn search_body(
    sandbox: Opened,
    headers: HeaderMap,
    JsonBody(request): JsonBody<SearchRequest>,
) -> Result<Response, Problem> {
    found(sandbox, request, &headers).await
}

async fn found(sandbox: Opened, request: SearchRequest, headers: &HeaderMap) -> Result<Response, Problem> {
    let query = translate::search(request)?;
    let hits = sandbox.ask(sandbox.session.search(&query)).await?;
    let mut count = 0_u64;
    let all = hits.map(Some).chain(futures_util::stream::once(std::future::ready(None))).map(move |hit| match hit {
        Some(hit) => {
            count += 1;
            hit.map(|hit| translate::hit_line(&hit))
        }
        None => Ok(FileLine::Done { hits: count }),
    });
    let lines = lines(sandbox.session, all, |line| line);
    Ok(stream::answer(Format::asked(headers).unwrap_or(Format::Ndjson), &FileLine::Heartbeat, lines))
}

/// Lines of whatever the agent streams; the last one says why, if it cannot go on.
fn lines<T: Send + 'static>(
    session: Session,
    items: impl Stream<Item = Result<T, GuestError>> + Send + Unpin + 'static,
    line: impl Fn(T) -> FileLine + Send + 'static,
) -> impl Stream<Item = Line> + Send + 'static {
    futures_util::stream::unfold(Some((session, items, line)), |state| async move {
        let (session, mut items, line) = state?;
        match items.next().await? {
            Ok(item) => {
                let given = Line::new(&line(item));
                Some((given, Some((session, items, line))))
            }
            Err(error) => {
                let error: CoreError = session.explain(error).await;
                let problem = serde_json::to_value(Problem::from(error).body(None)).unwrap_or_default();
                Some((Line::new(&FileLine::Error { problem }), None))
            }
        }
    })
}

/// Read an extended attribute.
#[utoipa::path(
    get, path = "/v1/sandboxes/{id}/files/xattr", tag = "files", operation_id = "getAttribute",
    params(("id" = String, Path, description = "The sandbox"), AttributeQuery),
    responses((status = 200, description = "Its value.", body = AttributeValue), Problems)
)]
pub(crate) async fn attribute(sandbox: Opened, QueryOf(query): QueryOf<AttributeQuery>) -> Result<Json<AttributeValue>, Problem> {
    let (path, user) = (translate::path("path", query.path, query.path_base64)?, translate::user(query.user)?);
    let value = sandbox.ask(sandbox.session.get_xattr(&path, &query.name, user.as_ref())).await?;
    let missing = || Problem::new(StatusCode::NOT_FOUND, "attribute_not_found", "the file has no such attribute");
    Ok(Json(AttributeValue { value_base64: translate::to_base64(&value.ok_or_else(missing)?) }))
}

/// Set an extended attribute.
#[utoipa::path(
    put, path = "/v1/sandboxes/{id}/files/xattr", tag = "files", operation_id = "setAttribute",
    params(("id" = String, Path, description = "The sandbox"), AttributeQuery), request_body = AttributeValue,
    responses((status = 204, description = "It is set."), Problems)
)]
pub(crate) async fn set_attribute(
    sandbox: Opened,
    QueryOf(query): QueryOf<AttributeQuery>,
    JsonBody(value): JsonBody<AttributeValue>,
) -> Result<StatusCode, Problem> {
    let (path, user) = (translate::path("path", query.path, query.path_base64)?, translate::user(query.user)?);
    let bytes = translate::from_base64("value_base64", &value.value_base64)?;
    sandbox.ask(sandbox.session.set_xattr(&path, &query.name, Some(&bytes), user.as_ref())).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Remove an extended attribute.
#[utoipa::path(
    delete, path = "/v1/sandboxes/{id}/files/xattr", tag = "files", operation_id = "removeAttribute",
    params(("id" = String, Path, description = "The sandbox"), AttributeQuery),
    responses((status = 204, description = "It is gone."), Problems)
)]
pub(crate) async fn remove_attribute(sandbox: Opened, QueryOf(query): QueryOf<AttributeQuery>) -> Result<StatusCode, Problem> {
    let (path, user) = (translate::path("path", query.path, query.path_base64)?, translate::user(query.user)?);
    sandbox.ask(sandbox.session.set_xattr(&path, &query.name, None, user.as_ref())).await?;
    Ok(StatusCode::NO_CONTENT)
}
