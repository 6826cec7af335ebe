//! [`PlacedBlobs`]: the contract, over whichever place was opened.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use belljar_ports::{BlobError, BlobHead, BlobKey, BlobList, BlobStream, Blobs, Put, Wanted};
use belljar_types::{Timestamp, lacks_room};
use futures_util::StreamExt;
use object_store::aws::AmazonS3;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt};

use crate::reading::verified;
use crate::uploads::Uploads;
use crate::writing::{self, Parts};

/// What services say that keep a bucket and have no room, or allow no more: the status, and codes of several of them.
const FULL_BUCKET: [&str; 3] = ["507 Insufficient Storage", "StorageFull", "QuotaExceeded"];

#[derive(Debug)]
pub(crate) enum Backend {
    Directory(LocalFileSystem),
    S3 { s3: Arc<AmazonS3>, uploads: Uploads },
}

/// Blobs in the place that was opened.
#[derive(Debug)]
pub struct PlacedBlobs {
    backend: Backend,
}

impl PlacedBlobs {
    pub(crate) fn new(backend: Backend) -> Self {
        Self { backend }
    }

    fn store(&self) -> &dyn ObjectStore {
        match &self.backend {
            Backend::Directory(files) => files,
            Backend::S3 { s3, .. } => s3.as_ref(),
        }
    }
}

#[async_trait]
impl Blobs for PlacedBlobs {
    async fn put(&self, key: &BlobKey, content: BlobStream, most: u64) -> Result<Put, BlobError> {
        let path = path(key);
        let mut parts = Parts::new(content, most);
        let first = parts.next().await?.unwrap_or_default();
        match &self.backend {
            _ if parts.is_done() => {
                self.store().put(&path, first).await.map_err(storage("keep", key))?;
            }
            Backend::Directory(files) => writing::into_file(files, key, &path, first, &mut parts).await?,
            Backend::S3 { s3, uploads } => writing::into_bucket(s3, uploads, key, &path, first, &mut parts).await?,
        }
        Ok(parts.put())
    }

    async fn get(&self, key: &BlobKey, wanted: Wanted) -> Result<Option<(u64, BlobStream)>, BlobError> {
        let (range, expected) = match wanted {
            Wanted::Whole { sha256 } => (None, Some(sha256)),
            Wanted::Part(range) => {
                let Some(head) = self.head(key).await? else { return Ok(None) };
                if range.start >= head.bytes || range.is_empty() {
                    return Err(BlobError::OutOfRange { key: key.to_string(), bytes: head.bytes, from: range.start });
                }
                (Some(GetRange::Bounded(range.start..range.end.min(head.bytes))), None)
            }
        };
        let got = match self.store().get_opts(&path(key), GetOptions { range, ..GetOptions::default() }).await {
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            other => other.map_err(storage("open", key))?,
        };
        let bytes = got.range.end - got.range.start;
        let pieces: BlobStream = Box::pin(got.into_stream().map(|piece| piece.map_err(io::Error::from)));
        let pieces = match expected {
            Some(expected) => verified(pieces, key.to_string(), expected),
            None => pieces,
        };
        Ok(Some((bytes, pieces)))
    }

    async fn head(&self, key: &BlobKey) -> Result<Option<BlobHead>, BlobError> {
        match self.store().head(&path(key)).await {
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            other => Ok(head(&other.map_err(storage("look at", key))?)),
        }
    }

    async fn remove(&self, key: &BlobKey) -> Result<(), BlobError> {
        match self.store().delete(&path(key)).await {
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            other => other.map_err(storage("remove", key)),
        }
    }

    fn list(&self, words: &BlobKey) -> BlobList {
        let within = words.to_string();
        let found = self.store().list(Some(&path(words)));
        Box::pin(found.filter_map(move |meta| {
            let read = match meta {
                // What has another kind of name was put there by somebody else.
                Ok(meta) => head(&meta).map(Ok),
                Err(error) => Some(Err(BlobError::Storage { operation: "list", key: within.clone(), source: error.into() })),
            };
            async { read }
        }))
    }
}

fn path(key: &BlobKey) -> Path {
    Path::from(key.as_str())
}

fn head(meta: &ObjectMeta) -> Option<BlobHead> {
    let put_at = Timestamp(u64::try_from(meta.last_modified.timestamp_millis()).unwrap_or(0));
    Some(BlobHead { key: meta.location.as_ref().parse().ok()?, bytes: meta.size, put_at })
}

pub(crate) fn storage(operation: &'static str, key: &BlobKey) -> impl FnOnce(object_store::Error) -> BlobError {
    let key = key.to_string();
    move |error| if is_full(&error) { BlobError::Full { key } } else { BlobError::Storage { operation, key, source: error.into() } }
}

/// Whether there was no room: a directory says so with the kernel's number, a service in its answer.
fn is_full(error: &object_store::Error) -> bool {
    let said = error.to_string();
    lacks_room(error) || FULL_BUCKET.iter().any(|words| said.contains(words))
}
