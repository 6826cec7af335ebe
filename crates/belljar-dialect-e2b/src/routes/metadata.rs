//! A file's own metadata: extended attributes `user.e2b.*`. The agent has no way to list attributes, so one more of them says which there are.
//! Where a file can have none (in a bucket, say) nothing is kept, and nothing is claimed to be.
//!
//! Programs inside can write these attributes too: of what is read back, no more is taken than an upload may have left.

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
/// Bytes of all names and values together.
const LARGEST: usize = 4096;
const MOST_NAMES: usize = 64;
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
    if metadata.len() > MOST_NAMES {
        return Err(ApiError::bad_request(format!("invalid metadata: {} keys are more than {MOST_NAMES}", metadata.len())));
    }
    let size: usize = metadata.iter().map(|(name, value)| name.len() + value.len()).sum();
    if size > LARGEST {
        return Err(ApiError::bad_request(format!("invalid metadata: {size} bytes are more than {LARGEST}")));
    }
    Ok(metadata)
}

/// What is kept with a file.
pub(super) async fn read(session: &Session, path: &GuestPath) -> BTreeMap<String, String> {
    let mut gathered = Gathered::default();
    for name in names(session, path).await {
        let value = session.get_xattr(path, &format!("{PREFIX}{name}"), Some(&root())).await;
        if let Ok(Some(value)) = value
            && !gathered.take(name, &value)
        {
            break;
        }
    }
    gathered.metadata
}

/// What was read, with what it may have.
#[derive(Default)]
struct Gathered {
    metadata: BTreeMap<String, String>,
    bytes: usize,
}

impl Gathered {
    /// Takes one more, and says whether there was room for it.
    fn take(&mut self, name: String, value: &[u8]) -> bool {
        self.bytes = self.bytes.saturating_add(name.len() + value.len());
        if self.bytes > LARGEST {
            return false;
        }
        if let Ok(value) = std::str::from_utf8(value) {
            self.metadata.insert(name, value.to_owned());
        }
        true
    }
}

/// What is kept with a file, by name; nothing for one that is not there.
pub(super) async fn names(session: &Session, path: &GuestPath) -> Vec<String> {
    let names = session.get_xattr(path, NAMES, Some(&root())).await.ok().flatten().unwrap_or_default();
    listed(&names)
}

/// The names in the list of them, as far as they can be an upload's.
fn listed(list: &[u8]) -> Vec<String> {
    let list = list.get(..LARGEST + MOST_NAMES).unwrap_or(list);
    let names = list.split(|byte| *byte == b'\n').filter_map(|name| std::str::from_utf8(name).ok());
    names.filter(|name| (1..=LONGEST_NAME).contains(&name.len())).take(MOST_NAMES).map(str::to_owned).collect()
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

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    /// What is gathered of a list where every value has this size, and how many values are asked for.
    fn gathered(list: &str, size: usize) -> (BTreeMap<String, String>, usize) {
        let (mut gathered, mut asked) = (Gathered::default(), 0);
        for name in listed(list.as_bytes()) {
            asked += 1;
            if !gathered.take(name, &vec![b'v'; size]) {
                break;
            }
        }
        (gathered.metadata, asked)
    }

    #[test]
    fn no_more_is_read_than_an_upload_may_leave() {
        let many: String = (0..10_000).map(|number| format!("n{number}\n")).collect();
        let (metadata, asked) = gathered(&many, 1);
        assert_eq!((metadata.len(), asked), (64, 64), "names");
        let (metadata, asked) = gathered(&many, 1000);
        assert_eq!((metadata.len(), asked), (4, 5), "bytes");
        assert_eq!(gathered("a\nb", 60_000), (BTreeMap::new(), 1), "bytes of one");
        let long = "x".repeat(LONGEST_NAME + 1);
        let (metadata, _) = gathered(&format!("{long}\n\nshort\n{}", "y".repeat(1 << 20)), 2);
        assert_eq!(metadata.into_iter().collect::<Vec<_>>(), [("short".to_owned(), "vv".to_owned())]);
    }

    #[test]
    fn all_that_an_upload_may_leave_is_read() {
        let headers = |count: usize, size: usize| -> HeaderMap {
            let name = |number| HeaderName::try_from(format!("{HEADER}{number:02}")).unwrap();
            (0..count).map(|number| (name(number), HeaderValue::try_from("v".repeat(size)).unwrap())).collect()
        };
        let kept = of_headers(&headers(64, 62)).unwrap();
        let list = kept.keys().map(String::as_str).collect::<Vec<_>>().join("\n");
        assert_eq!(gathered(&list, 62), (kept, 64));
        assert!(of_headers(&headers(65, 1)).is_err() && of_headers(&headers(64, 63)).is_err());
    }
}
