//! Artifacts: requests, views and cursors.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use belljar_core::{ArtifactCursor, ArtifactPage, KeepFile};
use belljar_types::{Artifact, Invalid, SandboxId, Timestamp};

use super::{bounded, moment, path, renamed, seconds, user};
use crate::dto::{ArtifactPageView, ArtifactQuery, ArtifactView, KeepRequest};

pub(crate) fn keep_file(request: KeepRequest) -> Result<KeepFile, Invalid> {
    Ok(KeepFile {
        path: path("path", Some(request.path), None)?,
        user: user(request.user)?,
        name: request.name,
        media_type: request.media_type,
        lifetime: request.expires_in_seconds.map(|value| seconds("expires_in_seconds", value)).transpose()?,
    })
}

pub(crate) fn artifact_view(artifact: &Artifact) -> ArtifactView {
    ArtifactView {
        id: artifact.id.to_string(),
        name: artifact.name.clone(),
        sandbox: artifact.sandbox.to_string(),
        path: artifact.path.clone(),
        bytes: artifact.bytes,
        sha256: artifact.sha256.clone(),
        media_type: artifact.media_type.clone(),
        created_at: moment(artifact.created_at),
        expires_at: artifact.expires_at.map(moment),
    }
}

/// Of which sandbox, after which, and how many.
pub(crate) fn artifact_query(query: ArtifactQuery) -> Result<(Option<SandboxId>, Option<ArtifactCursor>, u32), Invalid> {
    let sandbox = query.sandbox.map(|id| id.parse()).transpose().map_err(|error| renamed("sandbox", error))?;
    let limit = bounded("limit", query.limit, 100, 1, 1000)?;
    Ok((sandbox, query.cursor.map(|text| read_cursor(&text)).transpose()?, limit))
}

pub(crate) fn artifact_page(page: &ArtifactPage) -> ArtifactPageView {
    let write_cursor = |cursor: &ArtifactCursor| URL_SAFE_NO_PAD.encode(format!("{}.{}", cursor.created_at.0, cursor.id));
    ArtifactPageView { artifacts: page.artifacts.iter().map(artifact_view).collect(), next_cursor: page.next.as_ref().map(write_cursor) }
}

fn read_cursor(text: &str) -> Result<ArtifactCursor, Invalid> {
    let read = || {
        let plain = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        let (at, id) = plain.split_once('.')?;
        // The store counts in signed numbers.
        let at = at.parse::<u64>().ok().filter(|at| i64::try_from(*at).is_ok())?;
        Some(ArtifactCursor { created_at: Timestamp(at), id: id.parse().ok()? })
    };
    read().ok_or_else(|| Invalid::new("cursor", "what `next_cursor` said", text))
}
