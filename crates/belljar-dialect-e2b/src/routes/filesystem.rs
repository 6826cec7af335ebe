//! `filesystem.Filesystem`, as far as its calls are no streams: look, list, make, move and remove.

use axum::Json;
use axum::response::{IntoResponse, Response};
use belljar_core::{GuestError, Session};
use belljar_types::{FileInfo, GuestPath, ListOptions, UserName, escape_untrusted};
use futures_util::{StreamExt, stream};

use super::daemon::{As, Message, Sandboxed};
use super::entries::{as_daemon, describe, shown_path};
use super::upload::give_to;
use crate::dto::{Entry, ListDir, Move, OfPath};
use crate::errors::{Code, RpcError};
use crate::translate::{guest_path, sort_depth_first};

const NO_SUCH_FILE: i32 = 2;
const EXISTS: i32 = 17;
const NO_DIRECTORY: i32 = 20;
/// Files looked at in more detail at one time.
const AT_ONCE: usize = 32;

/// `Stat`.
pub(super) async fn stat(Sandboxed(inside): Sandboxed, As(user): As, Message(message): Message<OfPath>) -> Result<Response, RpcError> {
    let session = &inside.session;
    let info = look(session, user.as_ref(), &message.path).await?;
    Ok(answer(&describe(session, user.as_ref(), &shown_path(&message.path, &info.path), &info).await))
}

async fn look(session: &Session, user: Option<&UserName>, asked: &str) -> Result<FileInfo, RpcError> {
    let path = guest_path(asked)?;
    let found = as_daemon(session, user, &path, |path, user| async move { session.stat(&path, user.as_ref()).await }).await;
    match found {
        Ok(info) => Ok(info),
        Err(error) => Err(explain(session, user, error, "file not found").await),
    }
}

fn answer(entry: &Entry) -> Response {
    Json(serde_json::json!({ "entry": entry })).into_response()
}

/// What went wrong, with the daemon's words for what is not there.
pub(super) async fn explain(session: &Session, user: Option<&UserName>, error: GuestError, not_found: &str) -> RpcError {
    match RpcError::of_guest(session, user, error).await {
        RpcError::Refused { code: Code::NotFound, message } => RpcError::new(Code::NotFound, format!("{not_found}: {message}")),
        other => other,
    }
}

/// `MakeDir`.
pub(super) async fn make_directory(
    Sandboxed(inside): Sandboxed,
    As(user): As,
    Message(message): Message<OfPath>,
) -> Result<Response, RpcError> {
    let (session, user) = (&inside.session, user.as_ref());
    let path = guest_path(&message.path)?;
    let shown = escape_untrusted(message.path.as_bytes());
    let made = as_daemon(session, user, &path, |path, user| async move { session.make_directory(&path, user.as_ref()).await }).await;
    match made {
        Ok(true) => {}
        Ok(false) => return Err(RpcError::new(Code::AlreadyExists, format!("directory already exists: {shown}"))),
        Err(GuestError::Refused { errno: EXISTS | NO_DIRECTORY, .. }) => {
            return Err(RpcError::invalid(format!("path already exists but it is not a directory: {shown}")));
        }
        Err(error) => return Err(explain(session, user, error, "path not found").await),
    }
    let mut info = look(session, user, &message.path).await?;
    give_to(session, user, &mut info).await?;
    Ok(answer(&describe(session, user, &shown_path(&message.path, &info.path), &info).await))
}

/// `Move`, into directories that are made if they are missing.
pub(super) async fn rename(Sandboxed(inside): Sandboxed, As(user): As, Message(message): Message<Move>) -> Result<Response, RpcError> {
    let (session, user) = (&inside.session, user.as_ref());
    let (from, to) = (guest_path(&message.source)?, guest_path(&message.destination)?);
    let try_once = || async {
        let to = &to;
        as_daemon(session, user, &from, |from, user| async move { session.rename(&from, to, user.as_ref()).await }).await
    };
    let mut moved = try_once().await;
    if matches!(moved, Err(GuestError::Refused { errno: NO_SUCH_FILE, .. }))
        && let Some(parent) = parent_of(&to)
        && session.stat(&from, user).await.is_ok()
    {
        let made = as_daemon(session, user, &parent, |path, user| async move { session.make_directory(&path, user.as_ref()).await }).await;
        if made.is_ok() {
            moved = try_once().await;
        }
    }
    match moved {
        Ok(info) => Ok(answer(&describe(session, user, &shown_path(&message.destination, &info.path), &info).await)),
        Err(error) => Err(explain(session, user, error, "source file not found").await),
    }
}

fn parent_of(path: &GuestPath) -> Option<GuestPath> {
    let bytes = path.as_bytes();
    let slash = bytes.iter().rposition(|byte| *byte == b'/')?;
    GuestPath::new(bytes.get(..slash.max(1))?).ok()
}

/// `Remove`; what is not there is removed already.
pub(super) async fn remove(Sandboxed(inside): Sandboxed, As(user): As, Message(message): Message<OfPath>) -> Result<Response, RpcError> {
    let session = &inside.session;
    let path = guest_path(&message.path)?;
    let removed = as_daemon(session, user.as_ref(), &path, |path, user| async move { session.remove(&path, user.as_ref()).await }).await;
    match removed {
        Ok(()) | Err(GuestError::Refused { errno: NO_SUCH_FILE | NO_DIRECTORY, .. }) => Ok(Json(serde_json::json!({})).into_response()),
        Err(error) => Err(RpcError::of_guest(session, user.as_ref(), error).await),
    }
}

/// `ListDir`: depth first, each directory by name, links not followed.
pub(super) async fn list(Sandboxed(inside): Sandboxed, As(user): As, Message(message): Message<ListDir>) -> Result<Response, RpcError> {
    let (session, user) = (&inside.session, user.as_ref());
    let path = guest_path(&message.path)?;
    let depth = message.depth.max(1);
    let listed = as_daemon(session, user, &path, |path, user| async move {
        session.list(&path, &ListOptions { user, depth, ..ListOptions::default() }).await
    })
    .await;
    let mut found = match listed {
        Ok(found) => found,
        Err(GuestError::Refused { errno: NO_DIRECTORY, .. }) => {
            return Err(RpcError::invalid(format!("path is not a directory: {}", escape_untrusted(message.path.as_bytes()))));
        }
        Err(error) => return Err(explain(session, user, error, "path not found").await),
    };
    sort_depth_first(&mut found, |info| info.path.as_bytes());
    let described = stream::iter(found).map(|info| async move {
        let path = belljar_http::clean_path(&String::from_utf8_lossy(info.path.as_bytes()));
        describe(session, user, &path, &info).await
    });
    let entries: Vec<Entry> = described.buffered(AT_ONCE).collect().await;
    Ok(Json(serde_json::json!({ "entries": entries })).into_response())
}

/// Refuses what is no directory, as the daemon does before it watches.
pub(super) async fn require_directory(session: &Session, user: Option<&UserName>, asked: &str) -> Result<GuestPath, RpcError> {
    let path = guest_path(asked)?;
    let shown = escape_untrusted(asked.as_bytes());
    let info =
        as_daemon(
            session,
            user,
            &path,
            |path, user| async move { session.list(&path, &ListOptions { user, depth: 1, max_entries: 1 }).await },
        )
        .await;
    match info {
        Ok(_) => {}
        Err(GuestError::Refused { errno: NO_DIRECTORY, .. }) => return Err(RpcError::invalid(format!("path {shown} not a directory"))),
        Err(error) => return Err(explain(session, user, error, &format!("path {shown} not found")).await),
    }
    match super::entries::absolute(session, user, &path).await {
        Ok(path) => Ok(path),
        Err(error) => Err(RpcError::of_guest(session, user, error).await),
    }
}
