//! Files and directories: looked at, made, moved, removed.

use axum::Json;
use axum::http::StatusCode;
use belljar_core::GuestError;
use belljar_http::{QueryOf, clean_path, group_number, resolve_link, user_numbers};
use belljar_types::{FileInfo, FileKind, GuestPath, ListOptions, UserName};

use super::inside::Inside;
use super::sandboxes::Answer;
use crate::dto::{FileInfoDto, FileQuery, MoveQuery, PermissionsQuery};
use crate::errors::{ApiError, is_no_such_file};
use crate::translate::{file_info, shown_path};

/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;
const DEEPEST: u32 = 64;

fn asked(query: &FileQuery) -> Answer<&str> {
    query.path.as_deref().filter(|path| !path.is_empty()).ok_or_else(|| ApiError::bad_request("path is required"))
}

/// `GET /files`.
pub(super) async fn list(inside: Inside, QueryOf(query): QueryOf<FileQuery>) -> Answer<Json<Vec<FileInfoDto>>> {
    let asked = query.path.as_deref().filter(|path| !path.is_empty()).unwrap_or(".");
    let depth = query.depth.unwrap_or(1);
    if !(1..=DEEPEST).contains(&depth) {
        return Err(ApiError::bad_request(format!("depth must be between 1 and {DEEPEST}")));
    }
    let root = follow(&inside, inside.path(asked)?).await?;
    let options = ListOptions { user: inside.user.clone(), depth, ..ListOptions::default() };
    let found = inside.session.list(&root.path, &options).await;
    let found = inside.done(found).await?;
    let base = String::from_utf8_lossy(root.path.as_bytes()).into_owned();
    Ok(Json(found.iter().map(|info| file_info(shown_path(asked, &base, info.path.as_bytes()), info)).collect()))
}

/// `GET /files/info`.
pub(super) async fn info(inside: Inside, QueryOf(query): QueryOf<FileQuery>) -> Answer<Json<FileInfoDto>> {
    let asked = asked(&query)?;
    let info = follow(&inside, inside.path(asked)?).await?;
    Ok(Json(file_info(asked.to_owned(), &info)))
}

/// What a path names in the end, links followed, with its path from the root.
pub(super) async fn follow(inside: &Inside, path: GuestPath) -> Answer<FileInfo> {
    let found = inside.session.stat(&path, inside.user()).await;
    let mut info = inside.done(found).await?;
    for _ in 0..MOST_LINKS {
        let link = clean_path(&String::from_utf8_lossy(info.path.as_bytes()));
        let Some(target) = &info.symlink_target else {
            // Detours mean nothing where a name is not UTF-8: the path then stays as it was found.
            let path = if info.path.as_bytes().is_ascii() { GuestPath::new(link)? } else { info.path.clone() };
            return Ok(FileInfo { path, ..info });
        };
        let path = GuestPath::new(resolve_link(&link, &String::from_utf8_lossy(target)))?;
        let found = inside.session.stat(&path, inside.user()).await;
        info = inside.done(found).await?;
    }
    Err(ApiError::bad_request("too many links").with_code("INVALID_FILE_PATH"))
}

/// `DELETE /files`.
pub(super) async fn delete(inside: Inside, QueryOf(query): QueryOf<FileQuery>) -> Answer<StatusCode> {
    let path = inside.path(asked(&query)?)?;
    let found = inside.session.stat(&path, inside.user()).await;
    if inside.done(found).await?.kind == FileKind::Directory && query.recursive != Some(true) {
        return Err(ApiError::bad_request("cannot delete directory without recursive flag"));
    }
    let removed = inside.session.remove(&path, inside.user()).await;
    inside.done(removed).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn octal(mode: &str) -> Answer<u32> {
    let mode = u32::from_str_radix(mode, 8).ok().filter(|mode| *mode <= 0o7777);
    mode.ok_or_else(|| ApiError::bad_request("invalid mode format"))
}

/// `POST /files/folder`.
pub(super) async fn make_directory(inside: Inside, QueryOf(query): QueryOf<FileQuery>) -> Answer<StatusCode> {
    let path = inside.path(asked(&query)?)?;
    let mode = query.mode.as_deref().filter(|mode| !mode.is_empty()).map(octal).transpose()?;
    let made = inside.session.make_directory(&path, inside.user()).await;
    if let (true, Some(mode)) = (inside.done(made).await?, mode) {
        let set = inside.session.set_mode(&path, mode, inside.user()).await;
        inside.done(set).await?;
    }
    Ok(StatusCode::CREATED)
}

/// `POST /files/move`: to where nothing is.
pub(super) async fn rename(inside: Inside, QueryOf(query): QueryOf<MoveQuery>) -> Answer<StatusCode> {
    let (from, to) = (inside.path(&query.source)?, inside.path(&query.destination)?);
    let source = inside.session.stat(&from, inside.user()).await;
    inside.done(source).await?;
    match inside.session.stat(&to, inside.user()).await {
        Ok(_) => return Err(ApiError::conflict("destination already exists")),
        Err(error) if is_no_such_file(&error) => {}
        Err(error) => return Err(crate::errors::of_guest(&inside.session, error).await),
    }
    let moved = inside.session.rename(&from, &to, inside.user()).await;
    inside.done(moved).await?;
    Ok(StatusCode::OK)
}

/// `POST /files/permissions`.
pub(super) async fn permissions(inside: Inside, QueryOf(query): QueryOf<PermissionsQuery>) -> Answer<StatusCode> {
    let path = inside.path(&query.path)?;
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    if let Some(mode) = given(&query.mode) {
        let set = inside.session.set_mode(&path, octal(&mode)?, inside.user()).await;
        inside.done(set).await?;
    }
    let uid = match given(&query.owner) {
        None => None,
        Some(owner) => match owner.parse() {
            Ok(number) => Some(number),
            Err(_) => Some(user_numbers(&inside.session, &owner).await.ok_or_else(|| ApiError::bad_request("user not found"))?.0),
        },
    };
    let gid = match given(&query.group) {
        None => None,
        Some(group) => match group.parse() {
            Ok(number) => Some(number),
            Err(_) => Some(group_number(&inside.session, &group).await.ok_or_else(|| ApiError::bad_request("group not found"))?),
        },
    };
    if uid.is_some() || gid.is_some() {
        let set = give(&inside, &path, uid, gid).await;
        inside.done(set).await?;
    }
    Ok(StatusCode::OK)
}

/// As the user, who may give away little; as root where the sandbox has one, as `sudo chown` would.
async fn give(inside: &Inside, path: &GuestPath, uid: Option<u32>, gid: Option<u32>) -> Result<(), GuestError> {
    let absolute = inside.session.stat(path, inside.user()).await?.path;
    let root: Option<UserName> = "root".parse().ok();
    match inside.session.set_owner(&absolute, uid, gid, inside.user()).await {
        Err(GuestError::Refused { errno: 1 | 13, .. }) => inside.session.set_owner(&absolute, uid, gid, root.as_ref()).await,
        done => done,
    }
}
