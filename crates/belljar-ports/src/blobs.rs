//! [`Blobs`]: bytes under a key, whole or not there. What they mean is the store's to know, and so is their digest: whoever reads all of a
//! blob says which digest it must have, and is never given other bytes as if they were whole.

use std::fmt;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::str::FromStr;

use async_trait::async_trait;
use belljar_types::{Invalid, Timestamp};
use bytes::Bytes;
use futures_core::Stream;

/// Bytes on their way in or out.
pub type BlobStream = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// Blobs as they are found.
pub type BlobList = Pin<Box<dyn Stream<Item = Result<BlobHead, BlobError>> + Send>>;

const LONGEST_KEY: usize = 255;

/// The name of a blob: words of lower-case letters, digits, `.`, `_` and `-`, with `/` between them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobKey(String);

impl BlobKey {
    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BlobKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for BlobKey {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
        let word = |word: &str| !word.is_empty() && !word.starts_with('.') && word.bytes().all(allowed);
        if text.len() <= LONGEST_KEY && text.split('/').all(word) {
            return Ok(Self(text.to_owned()));
        }
        Err(Invalid::new("key", "words of a-z, 0-9, '.', '_' and '-' that do not begin with '.', with '/' between them", text))
    }
}

/// What was put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// How many bytes there were.
    pub bytes: u64,
    /// Their SHA-256, in hexadecimal.
    pub sha256: String,
    /// The first of them, to tell what they are.
    pub first: Vec<u8>,
}

/// What can be said of a blob without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobHead {
    /// Its name.
    pub key: BlobKey,
    /// How many bytes it has.
    pub bytes: u64,
    /// When it was put.
    pub put_at: Timestamp,
}

/// Which bytes of a blob are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// All of them. The stream ends with an error if their SHA-256, in hexadecimal, is another.
    Whole {
        /// What it must be.
        sha256: String,
    },
    /// Some of them. Nothing can be said about their digest.
    Part(Range<u64>),
}

/// Why bytes were not kept or found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// There are more than may be kept; nothing was.
    #[error("there are more than {most} bytes, the most that may be kept")]
    TooLarge {
        /// How many may be kept.
        most: u64,
    },
    /// Whoever sent the bytes failed; nothing was kept.
    #[error("read what is to be kept")]
    Source(#[source] io::Error),
    /// There are not so many bytes.
    #[error("{key} has {bytes} bytes: there is nothing from byte {from} on")]
    OutOfRange {
        /// Of which blob.
        key: String,
        /// How many it has.
        bytes: u64,
        /// What was asked for.
        from: u64,
    },
    /// The place where they are kept has no room; nothing was kept.
    #[error("the place where blobs are kept is full, so {key} was not kept: make room there")]
    Full {
        /// Of which blob.
        key: String,
    },
    /// The place where they are kept failed.
    #[error("{operation} {key}")]
    Storage {
        /// What was being attempted.
        operation: &'static str,
        /// Of which.
        key: String,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
}

/// Where bytes are kept.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Keeps at most `most` bytes under a key; what was there before is replaced. When this returns they are kept, all of them; if it
    /// fails or is given up, nothing is seen of them, and what is half sent is removed at once or when the server next starts.
    async fn put(&self, key: &BlobKey, content: BlobStream, most: u64) -> Result<Put, BlobError>;

    /// The wanted bytes, and how many come; `None` if there is no such blob.
    async fn get(&self, key: &BlobKey, wanted: Wanted) -> Result<Option<(u64, BlobStream)>, BlobError>;

    /// What is under that key; `None` if nothing is.
    async fn head(&self, key: &BlobKey) -> Result<Option<BlobHead>, BlobError>;

    /// Removes it. Does nothing, successfully, if there is none.
    async fn remove(&self, key: &BlobKey) -> Result<(), BlobError>;

    /// All blobs whose key begins with these words.
    fn list(&self, words: &BlobKey) -> BlobList;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_leads_nowhere_else() {
        for good in ["a", "artifacts/ak3v/x.tar", "snapshots/0_1-2"] {
            assert!(good.parse::<BlobKey>().is_ok(), "{good}");
        }
        for bad in ["", "/a", "a/", "a//b", "../a", "a/../b", ".hidden", "A", "a b", "a#1", "ä", &"a".repeat(256)] {
            assert!(bad.parse::<BlobKey>().is_err(), "{bad}");
        }
    }
}
