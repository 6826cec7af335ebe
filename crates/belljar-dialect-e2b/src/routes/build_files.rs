//! Files for builds: a link is asked for with a key, and the archive is sent to it without one. The link is signed, for one archive of one project.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use belljar_types::{FilesHash, Scope, Timestamp};
use futures_util::TryStreamExt;

use super::extract::Asked;
use crate::dto::UploadLink;
use crate::errors::ApiError;
use crate::state::E2bState;
use belljar_http::{Authenticated, acting_for, origin};

/// How long a link is good for: E2B's clients give themselves an hour.
const LINK_LIVES: std::time::Duration = std::time::Duration::from_secs(3600);

/// Where the archive is to be sent. The link is given even if it is there: a client may want to send it again.
pub(super) async fn link(
    State(state): State<E2bState>,
    who: Authenticated,
    Path((_template, hash)): Path<(String, String)>,
    request: Request,
) -> Result<(StatusCode, Json<UploadLink>), ApiError> {
    let hash: FilesHash = hash.parse()?;
    let present = state.service.has_build_files(&who, &hash).await?;
    let origin =
        origin(request.headers(), request.extensions(), request.uri()).ok_or_else(|| ApiError::bad_request("the request names no host"))?;
    let token = state.tokens.files(&hash, &who.project, Timestamp::now().plus(LINK_LIVES));
    let url = format!("{origin}/templates/files/{hash}?token={token}");
    Ok((StatusCode::CREATED, Json(UploadLink { present, url: Some(url) })))
}

#[derive(serde::Deserialize)]
pub(super) struct LinkQuery {
    token: String,
}

/// Takes an archive.
pub(super) async fn receive(
    State(state): State<E2bState>,
    Path(hash): Path<String>,
    Asked(query): Asked<LinkQuery>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    let hash: FilesHash = hash.parse()?;
    let project = state.tokens.check_files(&hash, &query.token);
    let project = project.ok_or_else(|| ApiError::unauthorized("this link is not valid, or no longer; ask for another one"))?;
    let content = body.into_data_stream().map_err(std::io::Error::other);
    state.service.put_build_files(&acting_for(project, Scope::Templates), &hash, Box::pin(content)).await?;
    Ok(StatusCode::OK)
}
