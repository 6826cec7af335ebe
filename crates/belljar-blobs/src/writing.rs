//! A blob on its way in, in parts of one size, which some services insist on. What fits into one part is put in one go.

use std::io;

use belljar_ports::{BlobError, BlobKey, BlobStream, Put};
use belljar_types::hex;
use bytes::Bytes;
use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt, TryStreamExt};
use object_store::aws::AmazonS3;
use object_store::local::LocalFileSystem;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};
use sha2::{Digest, Sha256};

use crate::place::storage;
use crate::uploads::Uploads;

const PART: usize = 8 << 20;
/// How many parts may be on their way; each is memory.
const IN_FLIGHT: usize = 3;
/// The most that services take for one object.
const MOST_PARTS: u64 = 10_000;
/// How many of the first bytes are given back, to tell what they are.
const FIRST: usize = 512;

/// Cuts a stream into parts, and counts and hashes it.
pub(crate) struct Parts {
    content: BlobStream,
    rest: Option<Bytes>,
    done: bool,
    most: u64,
    bytes: u64,
    hash: Sha256,
    first: Vec<u8>,
}

impl Parts {
    pub(crate) fn new(content: BlobStream, most: u64) -> Self {
        let most = most.min(MOST_PARTS * PART as u64);
        Self { content, rest: None, done: false, most, bytes: 0, hash: Sha256::new(), first: Vec::new() }
    }

    /// The next part: all but the last have the same size.
    pub(crate) async fn next(&mut self) -> Result<Option<PutPayload>, BlobError> {
        let mut pieces: Vec<Bytes> = Vec::new();
        let mut room = PART;
        while room > 0 {
            let Some(mut piece) = self.piece().await? else { break };
            if piece.len() > room {
                self.rest = Some(piece.split_off(room));
            }
            room -= piece.len();
            pieces.push(piece);
        }
        // A part that came out even may be the last one.
        if !self.done && self.rest.is_none() {
            self.rest = self.piece().await?;
        }
        Ok((!pieces.is_empty()).then(|| PutPayload::from_iter(pieces)))
    }

    async fn piece(&mut self) -> Result<Option<Bytes>, BlobError> {
        if let Some(rest) = self.rest.take() {
            return Ok(Some(rest));
        }
        while !self.done {
            let Some(piece) = self.content.next().await else {
                self.done = true;
                break;
            };
            let piece = piece.map_err(BlobError::Source)?;
            self.bytes += piece.len() as u64;
            if self.bytes > self.most {
                return Err(BlobError::TooLarge { most: self.most });
            }
            let missing = FIRST.saturating_sub(self.first.len());
            self.first.extend(piece.iter().take(missing));
            self.hash.update(&piece);
            if !piece.is_empty() {
                return Ok(Some(piece));
            }
        }
        Ok(None)
    }

    /// Whether nothing comes any more.
    pub(crate) fn is_done(&self) -> bool {
        self.done && self.rest.is_none()
    }

    pub(crate) fn put(self) -> Put {
        Put { bytes: self.bytes, sha256: hex(&self.hash.finalize()), first: self.first }
    }
}

pub(crate) async fn into_file(
    files: &LocalFileSystem,
    key: &BlobKey,
    path: &Path,
    first: PutPayload,
    parts: &mut Parts,
) -> Result<(), BlobError> {
    let mut upload = files.put_multipart(path).await.map_err(storage("begin to keep", key))?;
    let sent = async {
        let mut next = Some(first);
        while let Some(part) = next {
            upload.put_part(part).await.map_err(storage("write", key))?;
            next = parts.next().await?;
        }
        upload.complete().await.map_err(storage("keep", key))
    };
    if let Err(error) = sent.await {
        // Its file goes with it; the next opening looks as well.
        let _gone = upload.abort().await;
        return Err(error);
    }
    Ok(())
}

pub(crate) async fn into_bucket(
    s3: &AmazonS3,
    uploads: &Uploads,
    key: &BlobKey,
    path: &Path,
    first: PutPayload,
    parts: &mut Parts,
) -> Result<(), BlobError> {
    let upload = s3.create_multipart(path).await.map_err(storage("begin to keep", key))?;
    let noted = |source: io::Error| BlobError::Storage { operation: "write down the upload of", key: key.to_string(), source };
    let sent = async {
        uploads.begun(key.as_str(), &upload).await.map_err(noted)?;
        let ids = send(s3, key, path, &upload, first, parts).await?;
        s3.complete_multipart(path, &upload, ids).await.map_err(storage("keep", key))
    };
    match sent.await {
        Ok(_kept) => uploads.ended(&upload).await,
        Err(error) => {
            // Otherwise the next start ends it.
            if s3.abort_multipart(path, &upload).await.is_ok() {
                uploads.ended(&upload).await;
            }
            return Err(error);
        }
    }
    Ok(())
}

async fn send(
    s3: &AmazonS3,
    key: &BlobKey,
    path: &Path,
    upload: &String,
    first: PutPayload,
    parts: &mut Parts,
) -> Result<Vec<PartId>, BlobError> {
    let mut sending = FuturesUnordered::new();
    let mut sent = Vec::new();
    let mut next = Some(first);
    let mut number = 0;
    while let Some(part) = next {
        sending.push(async move { s3.put_part(path, upload, number, part).await.map(|id| (number, id)) });
        number += 1;
        if sending.len() >= IN_FLIGHT {
            sent.extend(sending.try_next().await.map_err(storage("send", key))?);
        }
        next = parts.next().await?;
    }
    while let Some(one) = sending.try_next().await.map_err(storage("send", key))? {
        sent.push(one);
    }
    sent.sort_by_key(|(number, _)| *number);
    Ok(sent.into_iter().map(|(_, id)| id).collect())
}
