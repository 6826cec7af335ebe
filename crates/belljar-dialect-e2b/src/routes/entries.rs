//! Acting on files as E2B's daemon does: with root's reach and the user's name.
//!
//! The agent acts as the user. Where the kernel says no to the user, and the sandbox allows root, the daemon would still have done it.

use std::collections::BTreeMap;

use belljar_core::{GuestError, Session};
use belljar_http::{clean_path, resolve_link};
use belljar_types::{FileInfo, FileKind, GuestPath, UserName};

use super::metadata;
use crate::dto::Entry;
use crate::translate::entry;

const NOT_PERMITTED: i32 = 1;
const ACCESS_DENIED: i32 = 13;
/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;

pub(super) fn root() -> UserName {
    "root".parse().expect("a user's name")
}

/// Whether the kernel refused this to the user.
pub(super) fn is_denied(error: &GuestError) -> bool {
    matches!(error, GuestError::Refused { errno: NOT_PERMITTED | ACCESS_DENIED, .. })
}

/// Does something with a path as the user, and as root if the user may not.
pub(super) async fn as_daemon<T, F: Future<Output = Result<T, GuestError>>>(
    session: &Session,
    user: Option<&UserName>,
    path: &GuestPath,
    act: impl Fn(GuestPath, Option<UserName>) -> F,
) -> Result<T, GuestError> {
    match act(path.clone(), user.cloned()).await {
        Err(error) if is_denied(&error) => {
            let path = absolute(session, user, path).await?;
            act(path, Some(root())).await.map_err(|_| error)
        }
        done => done,
    }
}

/// The path from the root: what is relative begins in the user's home.
pub(super) async fn absolute(session: &Session, user: Option<&UserName>, path: &GuestPath) -> Result<GuestPath, GuestError> {
    if path.is_absolute() {
        return Ok(path.clone());
    }
    let home = session.stat(&GuestPath::new(".")?, user).await?;
    let joined = [home.path.as_bytes(), b"/", path.as_bytes()].concat();
    Ok(GuestPath::new(clean_path(&String::from_utf8_lossy(&joined)))?)
}

/// The path a client is told: as it asked if that was from the root, else the full one.
pub(super) fn shown_path(asked: &str, found: &GuestPath) -> String {
    if asked.starts_with('/') { asked.to_owned() } else { clean_path(&String::from_utf8_lossy(found.as_bytes())) }
}

/// Everything about a file that clients are told.
pub(super) async fn describe(session: &Session, user: Option<&UserName>, path: &str, info: &FileInfo) -> Entry {
    let metadata = if info.kind == FileKind::File { metadata::read(session, &info.path).await } else { BTreeMap::new() };
    if info.kind != FileKind::Symlink {
        return entry(path, info, None, metadata);
    }
    match follow(session, user, info).await {
        Some((at, there)) => entry(path, info, Some((at, Some(&there))), metadata),
        None => entry(path, info, None, metadata),
    }
}

/// Where a link leads in the end.
async fn follow(session: &Session, user: Option<&UserName>, link: &FileInfo) -> Option<(String, FileInfo)> {
    let mut at = clean_path(&String::from_utf8_lossy(link.path.as_bytes()));
    let mut info = link.clone();
    for _ in 0..MOST_LINKS {
        let Some(target) = &info.symlink_target else { return Some((at, info)) };
        at = resolve_link(&at, &String::from_utf8_lossy(target));
        let path = GuestPath::new(at.as_str()).ok()?;
        info = as_daemon(session, user, &path, |path, user| async move { session.stat(&path, user.as_ref()).await }).await.ok()?;
    }
    None
}
