//! The key of an object store, as the file has it that a setting names.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use belljar_blobs::S3Credentials;
use belljar_types::{Invalid, Secret};
use serde::Deserialize;

/// What the key file holds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    access_key_id: String,
    secret_access_key: String,
}

/// Reads such a file, which the setting `field` names.
pub(super) fn credentials(field: &str, file: &Path) -> Result<S3Credentials, Invalid> {
    let refused = |expected: String| Invalid::new(field, expected, file.display().to_string());
    let metadata = std::fs::metadata(file).map_err(|error| refused(format!("a file that can be read: {error}")))?;
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err(refused("a file that only its owner can read: chmod 600".to_owned()));
    }
    let text = std::fs::read_to_string(file).map_err(|error| refused(format!("a file that can be read: {error}")))?;
    // What the parser says could show the key.
    let key: KeyFile =
        toml::from_str(&text).map_err(|_| refused("two lines: access_key_id = \"…\" and secret_access_key = \"…\"".to_owned()))?;
    Ok(S3Credentials { access_key_id: key.access_key_id, secret_access_key: Secret::new(key.secret_access_key) })
}

/// Checks the address of an object store, which the setting `field` gives.
pub(super) fn check_endpoint(field: &str, endpoint: Option<&String>) -> Result<(), Invalid> {
    match endpoint {
        Some(url) if !url.starts_with("https://") && !url.starts_with("http://") => {
            Err(Invalid::new(field, "an address that begins with https:// or http://", url))
        }
        _ => Ok(()),
    }
}
