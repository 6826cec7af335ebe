//! The bucket: one file an object, moved into place when it is whole.

use std::collections::BTreeSet;
use std::io::SeekFrom;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use belljar_types::hex;
use futures_util::{StreamExt, stream};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use sha2::{Digest, Sha256};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

use super::answers::{Query, Refusal, escaped, xml};
use super::empty;

/// The smallest part but the last, as with Amazon.
const SMALLEST_PART: u64 = 5 << 20;
const PIECE: usize = 64 << 10;

pub(super) struct Objects {
    root: PathBuf,
    page: usize,
}

impl Objects {
    pub(super) fn open(root: &Path, page: usize) -> std::io::Result<Self> {
        for directory in ["objects", "uploads", "staging"] {
            std::fs::create_dir_all(root.join(directory))?;
        }
        Ok(Self { root: root.to_owned(), page })
    }

    pub(super) fn file(&self, key: &str) -> PathBuf {
        self.root.join("objects").join(utf8_percent_encode(key, NON_ALPHANUMERIC).to_string())
    }

    pub(super) fn keys(&self) -> Vec<String> {
        let mut keys = names(&self.root.join("objects"));
        keys.sort();
        keys
    }

    pub(super) fn uploads(&self) -> usize {
        names(&self.root.join("uploads")).len()
    }

    fn upload(&self, id: &str) -> Result<PathBuf, Refusal> {
        let directory = self.root.join("uploads").join(utf8_percent_encode(id, NON_ALPHANUMERIC).to_string());
        if directory.is_dir() { Ok(directory) } else { Err(Refusal::NO_UPLOAD) }
    }

    pub(super) async fn get(&self, key: &str, range: Option<&HeaderValue>, with_body: bool) -> Result<Response, Refusal> {
        let mut file = File::open(self.file(key)).await.map_err(|_| Refusal::NO_KEY)?;
        let metadata = file.metadata().await?;
        let bytes = metadata.len();
        let (from, end) = match range.map(|range| parse_range(range, bytes)) {
            Some(parsed) => parsed.ok_or(Refusal::BAD_RANGE)?,
            None => (0, bytes),
        };
        let status = if range.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
        let changed = metadata.modified()?;
        let mut response = Response::builder()
            .status(status)
            .header("content-length", end - from)
            .header("etag", etag(&format!("{key}{changed:?}{bytes}")))
            .header("last-modified", http_date(changed));
        if range.is_some() {
            response = response.header("content-range", format!("bytes {from}-{}/{bytes}", end.saturating_sub(1)));
        }
        if !with_body {
            return empty(response);
        }
        file.seek(SeekFrom::Start(from)).await?;
        let pieces = stream::unfold(file.take(end - from), |mut file| async move {
            let mut piece = Vec::with_capacity(PIECE);
            match (&mut file).take(PIECE as u64).read_to_end(&mut piece).await {
                Ok(0) => None,
                Ok(_) => Some((Ok(piece), file)),
                Err(error) => Some((Err(error), file)),
            }
        });
        response.body(Body::from_stream(pieces)).map_err(|_| Refusal::DISK)
    }

    pub(super) async fn put(&self, key: &str, body: Body, digest: &str) -> Result<Response, Refusal> {
        let staged = self.root.join("staging").join(random());
        let tag = receive(&staged, body, digest).await?;
        std::fs::rename(&staged, self.file(key))?;
        empty(Response::builder().header("etag", tag))
    }

    pub(super) fn delete(&self, key: &str) -> Result<Response, Refusal> {
        // S3 says the same whether it was there or not.
        let _gone = std::fs::remove_file(self.file(key));
        empty(Response::builder().status(StatusCode::NO_CONTENT))
    }

    pub(super) fn begin(&self, key: &str) -> Result<Response, Refusal> {
        let id = random();
        std::fs::create_dir(self.root.join("uploads").join(&id))?;
        Ok(xml(&format!(
            "<InitiateMultipartUploadResult><Bucket>{}</Bucket><Key>{}</Key><UploadId>{id}</UploadId></InitiateMultipartUploadResult>",
            super::BUCKET,
            escaped(key)
        )))
    }

    pub(super) async fn put_part(&self, upload: &str, part: &str, body: Body, digest: &str) -> Result<Response, Refusal> {
        let number: u32 = part.parse().map_err(|_| Refusal::BAD_REQUEST)?;
        if !(1..=10_000).contains(&number) {
            return Err(Refusal::BAD_REQUEST);
        }
        let directory = self.upload(upload)?;
        let staged = self.root.join("staging").join(random());
        let tag = receive(&staged, body, digest).await?;
        std::fs::rename(&staged, directory.join(format!("{number}-{}", tag.trim_matches('"'))))?;
        empty(Response::builder().header("etag", tag))
    }

    pub(super) fn complete(&self, key: &str, upload: &str, wanted: &[u8], digest: &str) -> Result<Response, Refusal> {
        if digest != "UNSIGNED-PAYLOAD" && hex(&Sha256::digest(wanted)) != digest {
            return Err(Refusal::BAD_DIGEST);
        }
        let directory = self.upload(upload)?;
        let text = String::from_utf8_lossy(wanted);
        let mut files = Vec::new();
        for part in text.split("<Part>").skip(1) {
            let inner = |tag: &str| part.split_once(&format!("<{tag}>"))?.1.split_once(&format!("</{tag}>")).map(|(value, _)| value);
            let (number, tag) = inner("PartNumber").zip(inner("ETag")).ok_or(Refusal::BAD_PART)?;
            files.push(directory.join(format!("{number}-{}", tag.replace("&quot;", "").trim_matches('"'))));
        }
        let (last, others) = files.split_last().ok_or(Refusal::BAD_PART)?;
        let size = |file: &PathBuf| std::fs::metadata(file).map(|found| found.len()).map_err(|_| Refusal::BAD_PART);
        size(last)?;
        for file in others {
            if size(file)? < SMALLEST_PART {
                return Err(Refusal::SMALL_PART);
            }
        }
        let staged = self.root.join("staging").join(random());
        let mut whole = std::fs::File::create_new(&staged)?;
        for file in &files {
            std::io::copy(&mut std::fs::File::open(file)?, &mut whole)?;
        }
        std::fs::rename(&staged, self.file(key))?;
        std::fs::remove_dir_all(&directory)?;
        Ok(xml(&format!(
            "<CompleteMultipartUploadResult><Key>{}</Key><ETag>{}</ETag></CompleteMultipartUploadResult>",
            escaped(key),
            escaped(&etag(upload))
        )))
    }

    pub(super) fn abort(&self, upload: &str) -> Result<Response, Refusal> {
        std::fs::remove_dir_all(self.upload(upload)?)?;
        empty(Response::builder().status(StatusCode::NO_CONTENT))
    }

    pub(super) fn list(&self, query: &Query) -> Result<Response, Refusal> {
        if query.get("list-type") != Some("2") {
            return Err(Refusal::BAD_REQUEST);
        }
        let prefix = query.get("prefix").unwrap_or_default();
        let after = query.get("continuation-token").or_else(|| query.get("start-after")).unwrap_or_default();
        let most = query.get("max-keys").and_then(|most| most.parse().ok()).unwrap_or(1000).min(self.page);
        // With a delimiter, keys that go on after it are one entry: what they have in common.
        let delimiter = query.get("delimiter").filter(|delimiter| !delimiter.is_empty());
        let entry = |key: String| {
            let cut = delimiter.and_then(|delimiter| Some(prefix.len() + key.get(prefix.len()..)?.find(delimiter)? + delimiter.len()));
            cut.and_then(|cut| key.get(..cut)).map_or((key.clone(), false), |common| (common.to_owned(), true))
        };
        let entries: BTreeSet<(String, bool)> = self.keys().into_iter().filter(|key| key.starts_with(prefix)).map(entry).collect();
        let mut entries: Vec<(String, bool)> = entries.into_iter().filter(|(name, _)| name.as_str() > after).collect();
        let more = entries.len() > most;
        entries.truncate(most);
        let mut text = format!("<ListBucketResult><Name>{}</Name><IsTruncated>{more}</IsTruncated>", super::BUCKET);
        if let Some((last, _)) = entries.last().filter(|_| more) {
            text.push_str(&format!("<NextContinuationToken>{}</NextContinuationToken>", escaped(last)));
        }
        for (key, is_common) in &entries {
            if *is_common {
                text.push_str(&format!("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", escaped(key)));
                continue;
            }
            let Ok(found) = std::fs::metadata(self.file(key)) else { continue };
            let changed = jiff::Timestamp::try_from(found.modified()?).map_err(|_| Refusal::DISK)?;
            text.push_str(&format!(
                "<Contents><Key>{}</Key><LastModified>{changed:.3}</LastModified><ETag>{}</ETag><Size>{}</Size></Contents>",
                escaped(key),
                escaped(&etag(key)),
                found.len()
            ));
        }
        text.push_str("</ListBucketResult>");
        Ok(xml(&text))
    }
}

async fn receive(file: &Path, body: Body, digest: &str) -> Result<String, Refusal> {
    let kept = receive_into(file, body, digest).await;
    if kept.is_err() {
        // It may never have been made.
        let _gone = std::fs::remove_file(file);
    }
    kept
}

async fn receive_into(file: &Path, body: Body, digest: &str) -> Result<String, Refusal> {
    let mut out = File::create_new(file).await;
    let mut hash = Sha256::new();
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| Refusal::BAD_REQUEST)?;
        hash.update(&piece);
        // What has no room is read to its end all the same: a client that is cut off while it sends never sees why.
        if let Ok(open) = &mut out
            && let Err(error) = open.write_all(&piece).await
        {
            out = Err(error);
        }
    }
    out?.flush().await?;
    let found = hex(&hash.finalize());
    if digest != "UNSIGNED-PAYLOAD" && digest != found {
        return Err(Refusal::BAD_DIGEST);
    }
    Ok(format!("\"{}\"", found.get(..32).unwrap_or_default()))
}

fn parse_range(range: &HeaderValue, bytes: u64) -> Option<(u64, u64)> {
    let (from, last) = range.to_str().ok()?.strip_prefix("bytes=")?.split_once('-')?;
    let from: u64 = from.parse().ok()?;
    let end = if last.is_empty() { bytes } else { last.parse::<u64>().ok()?.saturating_add(1).min(bytes) };
    (from < end).then_some((from, end))
}

fn names(directory: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    entries.flatten().map(|entry| percent_decode_str(&entry.file_name().to_string_lossy()).decode_utf8_lossy().into_owned()).collect()
}

fn etag(of: &str) -> String {
    format!("\"{}\"", hex(&Sha256::digest(of.as_bytes())).get(..32).unwrap_or_default())
}

fn random() -> String {
    belljar_types::SandboxId::random().to_string()
}

fn http_date(time: SystemTime) -> String {
    let time = jiff::Timestamp::try_from(time).unwrap_or_default();
    time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}
