//! A file's own metadata: extended attributes `user.e2b.*`. The agent has no way to list attributes, so one more of them says which there are.
//! Where a file can have none (in a bucket, say) nothing is kept, and nothing is claimed to be.

use std::collections::BTreeMap;

use axum::http::HeaderMap;
use belljar_core::{GuestError, Session};
use belljar_types::GuestPath;

use super::entries::root;
use crate::errors::ApiError;

const PREFIX: &str = "user.e2b.";
const NAMES: &str = "user.belljar.e2b-names";
const HEADER: &str = "x-metadata-";
const LONGEST_NAME: usize = 246;
const LARGEST: usize = 4096;
const NOT_SUPPORTED: i32 = 95;

/// What an upload wants kept.
pub(super) fn of_headers(headers: &HeaderMap) -> Result<BTreeMap<String, String>, ApiError> {
    let mut metadata = BTreeMap::new();
    for (name, value) in headers {
        let Some(name) = name.as_str().strip_prefix(HEADER).filter(|name| !name.is_empty()) else { continue };
        let printable = |text: &str| text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
        let value = value.to_str().ok().filter(|value| printable(value));
        let value = value.ok_or_else(|| ApiError::bad_request(format!("invalid metadata: value of '{name}' is not printable ASCII")))?;
        if name.len() > LONGEST_NAME {
            return Err(ApiError::bad_request(format!("invalid metadata: a key may have {LONGEST_NAME} bytes")));
        }
        metadata.insert(name.to_owned(), value.to_owned());
    }
    let size: usize = metadata.iter().map(|(name, value)| name.len() + value.len()).sum();
    if size > LARGEST {
        return Err(ApiError::bad_request(format!("invalid metadata: {size} bytes are more than {LARGEST}")));
    }
    Ok(metadata)
}

/// What is kept with a file.
pub(super) async fn read(session: &Session, path: &GuestPath) -> BTreeMap<String, String> {
    let mut metadata = BTreeMap::new();
    for name in names(session, path).await {
        let value = session.get_xattr(path, &format!("{PREFIX}{name}"), Some(&root())).await;
        if let Ok(Some(value)) = value
            && let Ok(value) = String::from_utf8(value.to_vec())
        {
            metadata.insert(name, value);
        }
    }
    metadata
}

/// What is kept with a file, by name; nothing for one that is not there.
pub(super) async fn names(session: &Session, path: &GuestPath) -> Vec<String> {
    let names = session.get_xattr(path, NAMES, Some(&root())).await.ok().flatten().unwrap_or_default();
    String::from_utf8_lossy(&names).split('\n').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Keeps this with a file, and nothing of what was `before`.
pub(super) async fn replace(
    session: &Session,
    path: &GuestPath,
    before: &[String],
    metadata: &BTreeMap<String, String>,
) -> Result<(), GuestError> {
    if before.is_empty() && metadata.is_empty() {
        return Ok(());
    }
    let root = root();
    let set = async |name: &str, value: Option<&[u8]>| match session.set_xattr(path, name, value, Some(&root)).await {
        Err(GuestError::Refused { errno: NOT_SUPPORTED, .. }) => Ok(()),
        done => done,
    };
    for name in before.iter().filter(|name| !metadata.contains_key(*name)) {
        set(&format!("{PREFIX}{name}"), None).await?;
    }
    for (name, value) in metadata {
        set(&format!("{PREFIX}{name}"), Some(value.as_bytes())).await?;
    }
    let list = metadata.keys().map(String::as_str).collect::<Vec<_>>().join("\n");
    set(NAMES, (!list.is_empty()).then_some(list.as_bytes())).await
}
