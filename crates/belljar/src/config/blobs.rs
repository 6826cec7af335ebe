//! `[blobs]`: where bytes are kept that outlive sandboxes.

use std::path::{Path, PathBuf};

use belljar_blobs::S3Bucket;
use belljar_types::Invalid;
use serde::Deserialize;

use super::Bytes;
use super::key_file::{check_endpoint, credentials};

/// `[blobs]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BlobsConfig {
    pub(crate) kind: BlobsKind,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) endpoint: Option<String>,
    pub(crate) region: Option<String>,
    pub(crate) bucket: Option<String>,
    pub(crate) key_file: Option<PathBuf>,
    pub(crate) max_artifact: Option<Bytes>,
    pub(crate) max_artifacts: Option<u64>,
}

/// What keeps them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BlobsKind {
    /// A directory of this host.
    #[default]
    Directory,
    /// A bucket of anything that speaks S3.
    S3,
}

impl BlobsConfig {
    /// The directory, for that kind.
    pub(crate) fn directory(&self, data_dir: &Path) -> PathBuf {
        self.directory.clone().unwrap_or_else(|| data_dir.join("blobs"))
    }

    /// The bucket, for that kind.
    pub(crate) fn bucket(&self, data_dir: &Path) -> Result<S3Bucket, Invalid> {
        let needed = |field: &str| Invalid::new(field, "a value, because blobs.kind is \"s3\"", "nothing");
        check_endpoint("blobs.endpoint", self.endpoint.as_ref())?;
        Ok(S3Bucket {
            endpoint: self.endpoint.clone(),
            region: self.region.clone().unwrap_or_else(|| "us-east-1".to_owned()),
            bucket: self.bucket.clone().ok_or_else(|| needed("blobs.bucket"))?,
            credentials: credentials("blobs.key_file", self.key_file.as_deref().ok_or_else(|| needed("blobs.key_file"))?)?,
            uploads: data_dir.join("blob-uploads"),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_bucket_needs_its_name_and_a_key_that_others_cannot_read() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("key");
        let config = |bucket: Option<&str>| BlobsConfig {
            kind: BlobsKind::S3,
            bucket: bucket.map(str::to_owned),
            key_file: Some(file.clone()),
            ..BlobsConfig::default()
        };
        std::fs::write(&file, "access_key_id = \"a\"\nsecret_access_key = \"b\"\n").unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
        let open = config(Some("x")).bucket(home.path()).unwrap_err();
        assert!(open.field == "blobs.key_file" && open.expected.contains("chmod 600"), "{open}");
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(config(Some("x")).bucket(home.path()).unwrap().credentials.access_key_id, "a");
        assert_eq!(config(None).bucket(home.path()).unwrap_err().field, "blobs.bucket");
        std::fs::write(&file, "secret_access_key = hunter2").unwrap();
        let told = config(Some("x")).bucket(home.path()).unwrap_err().to_string();
        assert!(!told.contains("hunter2"), "{told}");
    }
}
