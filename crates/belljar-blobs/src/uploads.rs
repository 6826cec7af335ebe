//! Uploads in parts that are under way, one file each, so that whoever comes after a crash can end them: a bucket keeps their parts for ever
//! and shows them to nobody. One that was begun and not yet written down when the power went is left to the bucket's own rules.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use object_store::aws::AmazonS3;
use object_store::multipart::MultipartStore;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tracing::{info, warn};

#[derive(Debug, Serialize, Deserialize)]
struct Begun {
    key: String,
    upload: String,
}

/// The directory of those files.
#[derive(Debug)]
pub(crate) struct Uploads {
    directory: PathBuf,
}

impl Uploads {
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        Ok(Self { directory: directory.to_owned() })
    }

    fn file(&self, upload: &str) -> PathBuf {
        self.directory.join(belljar_types::hex(&Sha256::digest(upload.as_bytes())))
    }

    pub(crate) async fn begun(&self, key: &str, upload: &str) -> io::Result<()> {
        let body = serde_json::to_vec(&Begun { key: key.to_owned(), upload: upload.to_owned() })?;
        tokio::fs::write(self.file(upload), body).await
    }

    pub(crate) async fn ended(&self, upload: &str) {
        if let Err(error) = tokio::fs::remove_file(self.file(upload)).await {
            warn!(%error, "could not forget an upload that has ended; the next start asks for it in vain");
        }
    }

    /// Ends what is written down. A bucket that does not answer now is asked again at the next start.
    pub(crate) async fn end_what_was_left(&self, s3: &AmazonS3) {
        let Ok(entries) = std::fs::read_dir(&self.directory) else { return };
        for entry in entries.flatten() {
            let begun = std::fs::read(entry.path()).ok().and_then(|body| serde_json::from_slice::<Begun>(&body).ok());
            let Some(begun) = begun else {
                // It was cut short while it was written, before the first part was sent.
                let _gone = std::fs::remove_file(entry.path());
                continue;
            };
            match s3.abort_multipart(&begun.key.as_str().into(), &begun.upload).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {
                    info!(key = begun.key, "ended an upload that was under way when the server ended");
                    self.ended(&begun.upload).await;
                }
                Err(error) => warn!(key = begun.key, %error, "could not end an upload that was left; the next start tries again"),
            }
        }
    }
}
