//! Blobs as objects of a bucket.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use belljar_types::Secret;
use object_store::ClientOptions;
use object_store::aws::{AmazonS3, AmazonS3Builder};

use crate::OpenError;
use crate::place::{Backend, PlacedBlobs};
use crate::uploads::Uploads;

/// For as long as nothing comes; a whole transfer may take longer.
const SILENCE: Duration = Duration::from_secs(60);
const CONNECT: Duration = Duration::from_secs(10);

/// Who asks.
#[derive(Debug, Clone)]
pub struct S3Credentials {
    /// The name of the key.
    pub access_key_id: String,
    /// The key.
    pub secret_access_key: Secret<String>,
}

/// Where the bucket is.
#[derive(Debug, Clone)]
pub struct S3Bucket {
    /// The address of the service, with its scheme; Amazon's own when unset.
    pub endpoint: Option<String>,
    /// The region that requests are signed for.
    pub region: String,
    /// The bucket, which is there already.
    pub bucket: String,
    /// Who asks.
    pub credentials: S3Credentials,
    /// A directory of this host that remembers uploads under way, so that the next start can end those that a crash left.
    pub uploads: PathBuf,
}

/// Opens the bucket and ends the uploads that a crash left. Whether the bucket answers is seen when it is used: a server starts without it.
pub async fn open_s3(bucket: S3Bucket) -> Result<PlacedBlobs, OpenError> {
    let s3 = s3_client(&bucket)?;
    let uploads = Uploads::open(&bucket.uploads).map_err(|source| OpenError::Directory { path: bucket.uploads.clone(), source })?;
    uploads.end_what_was_left(&s3).await;
    Ok(PlacedBlobs::new(Backend::S3 { s3: Arc::new(s3), uploads }))
}

/// The bucket as it is, for whoever keeps something else in it than blobs.
pub fn s3_client(bucket: &S3Bucket) -> Result<AmazonS3, OpenError> {
    let plain = bucket.endpoint.as_deref().is_some_and(|endpoint| endpoint.starts_with("http://"));
    // The system may have another default already; either is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options =
        ClientOptions::new().with_allow_http(plain).with_timeout_disabled().with_read_timeout(SILENCE).with_connect_timeout(CONNECT);
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(&bucket.bucket)
        .with_region(&bucket.region)
        .with_access_key_id(&bucket.credentials.access_key_id)
        .with_secret_access_key(bucket.credentials.secret_access_key.reveal())
        .with_client_options(options)
        .with_allow_http(plain)
        .with_disable_bulk_delete(true);
    if let Some(endpoint) = &bucket.endpoint {
        builder = builder.with_endpoint(endpoint.trim_end_matches('/'));
    }
    builder.build().map_err(|source| OpenError::Bucket { bucket: bucket.bucket.clone(), source })
}
