//! `POST /files`: one file as it is, or several as a form; gzip-packed or not. Files are written in place, as programs that watch them expect.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use axum::Json;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use belljar_core::{GuestError, Session};
use belljar_http::{Form, base_name, content_type_is, user_numbers};
use belljar_types::{FileInfo, GuestPath, UserName, WriteOptions, escape_untrusted};
use futures_util::StreamExt;

use super::daemon::{Sandboxed, Shown};
use super::entries::{absolute, is_denied, root, shown_path};
use super::extract::Asked;
use super::metadata;
use super::signature::FileQuery;
use crate::dto::{UploadedFile, Uploads};
use crate::errors::{ApiError, RpcError, sandbox_gone, says_no_such_user};
use crate::state::E2bState;
use crate::stream::{Content, Replay, unpacked};
use crate::translate::guest_path;

const IS_DIRECTORY: i32 = 21;
const NO_SPACE: i32 = 28;
const OVER_QUOTA: i32 = 122;

/// Why a file was not written or read.
pub(super) enum FileError {
    Refused(ApiError),
    Gone(String),
}

impl From<ApiError> for FileError {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}

impl IntoResponse for FileError {
    fn into_response(self) -> Response {
        match self {
            Self::Refused(error) => error.into_response(),
            Self::Gone(id) => sandbox_gone(&id),
        }
    }
}

/// Lets in whoever has the token or a signed link, and says as whom they act.
pub(super) fn admit(
    state: &E2bState,
    session: &Session,
    shown: Shown,
    query: &FileQuery,
    method: &axum::http::Method,
) -> Result<Option<UserName>, ApiError> {
    match shown {
        Shown::Right => {}
        Shown::Wrong => return Err(ApiError::unauthorized("access token present in header but does not match")),
        Shown::Nothing => {
            let sandbox = session.sandbox();
            query.check(&state.tokens.daemon(&sandbox.id, &sandbox.project), method)?;
        }
    }
    let name = query.username.as_deref().filter(|name| !name.is_empty());
    name.map(|name| name.parse().map_err(|_| unknown_user(name))).transpose()
}

fn unknown_user(name: &str) -> ApiError {
    let name = escape_untrusted(name.as_bytes());
    ApiError::unauthorized(format!("error looking up user '{name}': user: unknown user {name}"))
}

/// `POST /files`.
pub(super) async fn write(
    axum::extract::State(state): axum::extract::State<E2bState>,
    Sandboxed(inside): Sandboxed,
    Asked(query): Asked<FileQuery>,
    request: Request,
) -> Result<Json<Uploads>, FileError> {
    let user = admit(&state, &inside.session, inside.shown, &query, request.method())?;
    let (parts, body) = request.into_parts();
    let upload = Upload { session: &inside.session, user: user.as_ref(), metadata: metadata::of_headers(&parts.headers)? };
    let spoiled = Arc::new(OnceLock::new());
    let content = body_content(body, &parts.headers, &spoiled)?;
    let written = if content_type_is(&parts.headers, "application/octet-stream") {
        let path = query.path.as_deref().ok_or_else(|| ApiError::bad_request("path is required for a raw upload"))?;
        upload.store(path, content).await.map(|file| vec![file])
    } else {
        upload.store_form(&parts.headers, query.path.as_deref(), content).await
    };
    match (written, spoiled.get()) {
        (Err(_), Some(why)) => Err(ApiError::bad_request(format!("error reading the upload: {why}")).into()),
        (written, _) => written.map(Json),
    }
}

fn body_content(body: Body, headers: &HeaderMap, spoiled: &Arc<OnceLock<String>>) -> Result<Content, ApiError> {
    let plain = body.into_data_stream().map(|piece| piece.map_err(|error| error.to_string())).boxed();
    match headers.get(header::CONTENT_ENCODING).map(|value| value.to_str().unwrap_or_default().trim().to_ascii_lowercase()).as_deref() {
        None | Some("" | "identity") => Ok(plain),
        Some("gzip") => Ok(unpacked(plain, Arc::clone(spoiled))),
        Some(other) => Err(ApiError::bad_request(format!(
            "error decompressing request body: unsupported Content-Encoding: {}, supported: [gzip]",
            escape_untrusted(other.as_bytes())
        ))),
    }
}

struct Upload<'a> {
    session: &'a Session,
    user: Option<&'a UserName>,
    metadata: BTreeMap<String, String>,
}

impl Upload<'_> {
    async fn store_form(&self, headers: &HeaderMap, path: Option<&str>, content: Content) -> Result<Uploads, FileError> {
        let mut form = Form::new(headers, content).ok_or_else(|| {
            let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
            let kind = escape_untrusted(kind.as_bytes());
            ApiError::bad_request(format!("unsupported content type: {kind}, expected multipart/form-data or application/octet-stream"))
        })?;
        let mut written: Uploads = Vec::new();
        while let Some(field) = form.next().await.map_err(|error| ApiError::bad_request(format!("error reading form: {error}")))? {
            if field.name.as_deref() != Some("file") {
                continue;
            }
            let name = path.or(field.file_name.as_deref()).ok_or_else(|| ApiError::bad_request("a file of the form has no name"))?;
            let file = self.store(name, field.content).await?;
            if written.iter().any(|before| before.path == file.path) {
                let message = format!(
                    "you cannot upload multiple files to the same path '{}' in one upload request",
                    escape_untrusted(file.path.as_bytes())
                );
                return Err(ApiError::bad_request(message).into());
            }
            written.push(file);
        }
        Ok(written)
    }

    async fn store(&self, asked: &str, content: Content) -> Result<UploadedFile, FileError> {
        let path = match guest_path(asked) {
            Ok(path) => path,
            Err(_) => return Err(ApiError::bad_request(format!("error resolving path: {}", escape_untrusted(asked.as_bytes()))).into()),
        };
        let mut info = self.put(&path, content).await?;
        let before = if info.attributes == Some(false) { Vec::new() } else { metadata::names(self.session, &info.path).await };
        if info.owner.as_ref() != Some(&acting(self.session, self.user))
            && let Err(error) = give_to(self.session, self.user, &mut info).await
        {
            return Err(of_rpc(error));
        }
        if let Err(error) = metadata::replace(self.session, &info.path, &before, &self.metadata).await {
            return Err(of_guest(self.session, self.user, error).await);
        }
        let metadata = if self.metadata.is_empty() { BTreeMap::new() } else { metadata::read(self.session, &info.path).await };
        let path = shown_path(asked, &info.path);
        Ok(UploadedFile { name: base_name(&path).to_owned(), path, kind: "file", metadata })
    }

    /// Writes as whoever asked, who takes the file over; as root where they may not.
    async fn put(&self, path: &GuestPath, content: Content) -> Result<FileInfo, FileError> {
        let session = self.session;
        let replay = Replay::new(content);
        let options =
            WriteOptions { user: self.user.cloned(), make_parents: true, claim: true, tell_attributes: true, ..WriteOptions::default() };
        let error = match session.write_file(path, &options, replay.stream()).await {
            Ok(info) => return Ok(info),
            Err(error) if is_denied(&error) && replay.rewind() => error,
            Err(error) => return Err(of_guest(session, self.user, error).await),
        };
        let Ok(path) = absolute(session, self.user, path).await else { return Err(of_guest(session, self.user, error).await) };
        let options = WriteOptions { user: Some(root()), claim: false, ..options };
        match session.write_file(&path, &options, replay.stream()).await {
            Ok(info) => Ok(info),
            Err(error) => Err(of_guest(session, self.user, error).await),
        }
    }
}

/// As whom a request acts.
fn acting(session: &Session, user: Option<&UserName>) -> String {
    let sandbox = session.sandbox();
    user.or(sandbox.spec.defaults.user.as_ref()).map_or(UserName::DEFAULT, UserName::as_str).to_owned()
}

/// Makes a file belong to whoever asked for it, as the daemon does with all it writes.
pub(super) async fn give_to(session: &Session, user: Option<&UserName>, info: &mut FileInfo) -> Result<(), RpcError> {
    let name = acting(session, user);
    let numbers = if info.owner.as_deref() == Some(&name) { Some((info.uid, info.gid)) } else { user_numbers(session, &name).await };
    let Some((uid, gid)) = numbers else { return Ok(()) };
    if let Err(error) = session.set_owner(&info.path, Some(uid), Some(gid), Some(&root())).await {
        // A sandbox without root leaves it as it is, and so do files that have no owner.
        return if matches!(error, GuestError::Refused { .. }) { Ok(()) } else { Err(RpcError::of_guest(session, user, error).await) };
    }
    (info.uid, info.gid, info.owner) = (uid, gid, Some(name));
    Ok(())
}

fn of_rpc(error: RpcError) -> FileError {
    match error {
        RpcError::Refused { message, .. } => ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, message).into(),
        RpcError::Gone { id } => FileError::Gone(id),
    }
}

/// What the agent said, in the statuses of `/files`.
pub(super) async fn of_guest(session: &Session, user: Option<&UserName>, error: GuestError) -> FileError {
    if says_no_such_user(&error) {
        return unknown_user(user.map_or(UserName::DEFAULT, UserName::as_str)).into();
    }
    let GuestError::Refused { errno, message, .. } = &error else { return of_rpc(RpcError::of_guest(session, user, error).await) };
    let (status, message) = match *errno {
        2 => (StatusCode::NOT_FOUND, format!("path does not exist: {message}")),
        IS_DIRECTORY => (StatusCode::BAD_REQUEST, format!("path is a directory: {message}")),
        NO_SPACE | OVER_QUOTA => (StatusCode::INSUFFICIENT_STORAGE, "not enough disk space available".to_owned()),
        1 | 13 => (StatusCode::FORBIDDEN, message.clone()),
        20 | 22 | 36 => (StatusCode::BAD_REQUEST, message.clone()),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, message.clone()),
    };
    ApiError::new(status, message).into()
}
