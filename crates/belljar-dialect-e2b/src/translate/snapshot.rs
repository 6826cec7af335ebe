//! Snapshots: their names as E2B writes them, and where a page ended.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use belljar_core::SnapshotCursor;
use belljar_types::{Snapshot, Timestamp};

use crate::dto::SnapshotDto;
use crate::errors::ApiError;

/// Its own id, which stays its own when its name is given again; and its name as that of a template.
pub(crate) fn snapshot_dto(snapshot: &Snapshot) -> SnapshotDto {
    let named = |name| format!("{}/{name}:default", snapshot.project);
    SnapshotDto { snapshot_id: snapshot.id.to_string(), names: snapshot.name.iter().map(named).collect() }
}

/// Where the next page starts, as text that means nothing to anybody else.
pub(crate) fn snapshot_token(cursor: &SnapshotCursor) -> String {
    URL_SAFE_NO_PAD.encode(format!("{}.{}", cursor.created_at.0, cursor.id))
}

pub(crate) fn snapshot_cursor(token: &str) -> Result<SnapshotCursor, ApiError> {
    let parse = || {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
        let (at, id) = text.split_once('.')?;
        let at = at.parse::<u64>().ok().filter(|at| i64::try_from(*at).is_ok())?;
        Some(SnapshotCursor { created_at: Timestamp(at), id: id.parse().ok()? })
    };
    parse().ok_or_else(|| ApiError::bad_request("invalid next token"))
}
