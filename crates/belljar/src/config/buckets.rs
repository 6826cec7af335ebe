//! `[buckets.NAME]`: buckets of object stores that projects may have as volumes. Their keys stay with the server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use belljar_blobs::S3Bucket;
use belljar_types::{Invalid, ProjectId};
use serde::Deserialize;

use super::Bytes;
use super::key_file::{check_endpoint, credentials};

/// All of them, by name.
pub(crate) type BucketsConfig = BTreeMap<String, BucketConfig>;

/// `[buckets.NAME]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BucketConfig {
    pub(crate) endpoint: Option<String>,
    pub(crate) region: Option<String>,
    pub(crate) bucket: String,
    #[serde(default)]
    pub(crate) prefix: String,
    pub(crate) key_file: PathBuf,
    /// Nobody has it before somebody is named.
    pub(crate) projects: Vec<ProjectId>,
    #[serde(default)]
    pub(crate) read_only: bool,
    pub(crate) drafts: Option<Bytes>,
}

impl BucketConfig {
    /// Room for files that are being written, when nobody says.
    const DRAFTS: u64 = 2 << 30;

    /// How it is reached.
    pub(crate) fn s3(&self, name: &str) -> Result<S3Bucket, Invalid> {
        let field = |of: &str| format!("buckets.{name}.{of}");
        check_endpoint(&field("endpoint"), self.endpoint.as_ref())?;
        Ok(S3Bucket {
            endpoint: self.endpoint.clone(),
            region: self.region.clone().unwrap_or_else(|| "us-east-1".to_owned()),
            bucket: self.bucket.clone(),
            credentials: credentials(&field("key_file"), &self.key_file)?,
            // Whole files are sent by whoever serves it, which ends what it began.
            uploads: PathBuf::new(),
        })
    }

    pub(crate) fn drafts_bytes(&self) -> u64 {
        self.drafts.map_or(Self::DRAFTS, Bytes::get)
    }

    /// Where files are kept while they are written.
    pub(crate) fn drafts(data_dir: &Path) -> PathBuf {
        data_dir.join("bucket-drafts")
    }
}
