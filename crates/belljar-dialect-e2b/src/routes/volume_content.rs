//! What is in a volume, for whoever has the volume's token: no key is shown, and the token opens this one volume.

use axum::Json;
use axum::body::Body;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use belljar_core::{Caller, CoreError, VolumeError};
use belljar_types::{ByteRange, EntryChange, Invalid, ProjectId, Scope, VolumeId, VolumePath, VolumeWrite};
use futures_util::TryStreamExt;

use super::extract::{Asked, Given};
use super::sandboxes::Answer;
use crate::dto::{ContentQuery, EntryPatch, EntryStat};
use crate::errors::ApiError;
use crate::state::E2bState;
use crate::translate::entry_stat;
use belljar_http::acting_for;

const DEEPEST: u32 = 64;
const MOST_ENTRIES: u32 = 100_000;

/// The volume of the path, and whose it is by the token that was shown.
pub(super) struct Opened {
    state: E2bState,
    volume: VolumeId,
    project: ProjectId,
    path: VolumePath,
    query: ContentQuery,
}

impl FromRequestParts<E2bState> for Opened {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &E2bState) -> Result<Self, ApiError> {
        let refused = || ApiError::unauthorized("this volume needs its token: Authorization: Bearer");
        let Path(id) = Path::<String>::from_request_parts(parts, state).await.map_err(|_| refused())?;
        let volume: VolumeId = id.parse().map_err(|_: Invalid| refused())?;
        let shown = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = shown.and_then(|value| value.strip_prefix("Bearer ")).ok_or_else(refused)?;
        let project = state.tokens.check_volume(&volume, token).ok_or_else(refused)?;
        let Asked(query) = Asked::<ContentQuery>::from_request_parts(parts, state).await?;
        if query.path.is_empty() {
            return Err(ApiError::bad_request("path is required"));
        }
        Ok(Self { state: state.clone(), volume, project, path: query.path.parse()?, query })
    }
}

impl Opened {
    fn reader(&self) -> Caller {
        acting_for(self.project.clone(), Scope::Read)
    }

    fn writer(&self) -> Caller {
        acting_for(self.project.clone(), Scope::Use)
    }

    fn change(&self) -> EntryChange {
        EntryChange { uid: self.query.uid, gid: self.query.gid, mode: self.query.mode }
    }
}

/// For a client that wants to read something of one kind, what is of another is not there.
fn not_there(error: CoreError) -> ApiError {
    match error {
        CoreError::Volume(VolumeError::WrongKind { .. }) => ApiError::new(StatusCode::NOT_FOUND, error.to_string()),
        other => other.into(),
    }
}

pub(super) async fn stat(opened: Opened) -> Answer<Json<EntryStat>> {
    let entry = opened.state.service.volume_entry(&opened.reader(), opened.volume.as_str(), &opened.path).await.map_err(not_there)?;
    Ok(Json(entry_stat(&entry)))
}

pub(super) async fn change(opened: Opened, Given(patch): Given<EntryPatch>) -> Answer<Json<EntryStat>> {
    let change = EntryChange { uid: patch.uid, gid: patch.gid, mode: patch.mode };
    let service = &opened.state.service;
    let entry = service.change_volume_entry(&opened.writer(), opened.volume.as_str(), &opened.path, change).await?;
    Ok(Json(entry_stat(&entry)))
}

pub(super) async fn remove(opened: Opened) -> Answer<StatusCode> {
    opened.state.service.remove_volume_entry(&opened.writer(), opened.volume.as_str(), &opened.path).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn list(opened: Opened) -> Answer<Json<Vec<EntryStat>>> {
    let depth = opened.query.depth.unwrap_or(1).clamp(1, DEEPEST);
    let service = &opened.state.service;
    let listed = service.volume_entries(&opened.reader(), opened.volume.as_str(), &opened.path, depth, MOST_ENTRIES).await;
    Ok(Json(listed.map_err(not_there)?.iter().map(entry_stat).collect()))
}

pub(super) async fn make_directory(opened: Opened) -> Answer<(StatusCode, Json<EntryStat>)> {
    let (service, force) = (&opened.state.service, opened.query.force == Some(true));
    let (who, change) = (opened.writer(), opened.change());
    let entry = service.make_volume_directory(&who, opened.volume.as_str(), &opened.path, change, force).await?;
    Ok((StatusCode::CREATED, Json(entry_stat(&entry))))
}

pub(super) async fn read(opened: Opened) -> Answer<Response> {
    let service = &opened.state.service;
    let file = service.read_volume(&opened.reader(), opened.volume.as_str(), &opened.path, ByteRange::default()).await;
    let file = file.map_err(not_there)?;
    let mut left = file.entry.size;
    // As many bytes as were promised, whatever the file does meanwhile.
    let content = file.content.map_ok(move |piece| {
        let piece = piece.slice(..piece.len().min(usize::try_from(left).unwrap_or(usize::MAX)));
        left -= piece.len() as u64;
        piece
    });
    let mut response = Body::from_stream(content).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(file.entry.size));
    Ok(response)
}

pub(super) async fn write(opened: Opened, body: Body) -> Answer<(StatusCode, Json<EntryStat>)> {
    let options = VolumeWrite { change: opened.change(), overwrite: opened.query.force == Some(true), make_parents: false };
    let content = Box::pin(body.into_data_stream().map_err(std::io::Error::other));
    let service = &opened.state.service;
    let entry = service.write_volume(&opened.writer(), opened.volume.as_str(), &opened.path, options, content).await?;
    Ok((StatusCode::CREATED, Json(entry_stat(&entry))))
}
