//! A place for blobs, and a way to look behind it.

use std::io;
use std::path::PathBuf;

use belljar_blobs::{S3Bucket, S3Credentials, open_directory, open_s3};
use belljar_ports::{BlobKey, BlobStream, Blobs, Wanted};
use belljar_testkit::s3::{self, S3Server};
use belljar_types::Secret;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use tempfile::TempDir;

pub(crate) struct Scene {
    pub(crate) blobs: Box<dyn Blobs>,
    pub(crate) server: Option<S3Server>,
    pub(crate) home: TempDir,
}

impl Scene {
    pub(crate) fn directory() -> Self {
        let home = tempfile::tempdir().unwrap();
        Self { blobs: Box::new(open_directory(&home.path().join("blobs")).unwrap()), server: None, home }
    }

    pub(crate) async fn s3() -> Self {
        let home = tempfile::tempdir().unwrap();
        // Small pages, so that lists have several.
        let server = S3Server::start(&home.path().join("bucket"), 2).await.unwrap();
        let blobs = open_s3(bucket(&server, home.path().join("uploads"), s3::SECRET_KEY)).await.unwrap();
        Self { blobs: Box::new(blobs), server: Some(server), home }
    }

    /// The file in which a blob's bytes lie.
    pub(crate) fn file(&self, of: &BlobKey) -> PathBuf {
        match &self.server {
            Some(server) => server.file(of.as_str()),
            None => self.home.path().join("blobs").join(of.as_str()),
        }
    }

    pub(crate) async fn whole(&self, of: &BlobKey, sha256: &str) -> io::Result<Vec<u8>> {
        let (bytes, pieces) = self.blobs.get(of, Wanted::Whole { sha256: sha256.to_owned() }).await.unwrap().unwrap();
        let read = pieces.try_collect::<Vec<_>>().await?.concat();
        assert_eq!(read.len() as u64, bytes);
        Ok(read)
    }

    pub(crate) async fn keys(&self, words: &str) -> Vec<String> {
        let mut keys: Vec<String> = self.blobs.list(&key(words)).map(|head| head.unwrap().key.to_string()).collect().await;
        keys.sort();
        keys
    }
}

pub(crate) fn bucket(server: &S3Server, uploads: PathBuf, secret: &str) -> S3Bucket {
    S3Bucket {
        endpoint: Some(server.endpoint()),
        region: s3::REGION.to_owned(),
        bucket: s3::BUCKET.to_owned(),
        credentials: S3Credentials { access_key_id: s3::ACCESS_KEY.to_owned(), secret_access_key: Secret::new(secret.to_owned()) },
        uploads,
    }
}

pub(crate) fn key(text: &str) -> BlobKey {
    text.parse().unwrap()
}

pub(crate) fn of(pieces: Vec<io::Result<Bytes>>) -> BlobStream {
    Box::pin(stream::iter(pieces))
}

/// So many pieces of so many bytes, each made when it is wanted.
pub(crate) fn pieces(count: usize, size: usize) -> BlobStream {
    Box::pin(stream::iter((0..count).map(move |number| {
        let first = u8::try_from(number % 251).unwrap();
        Ok(Bytes::from((0..size).map(|at| first.wrapping_add(u8::try_from(at % 241).unwrap())).collect::<Vec<u8>>()))
    })))
}
