//! Digests as text, and readers that hash what passes through them.

use std::io::{self, Read};

use belljar_types::{LayerDigest, hex};
use sha2::{Digest, Sha256};

/// A SHA-256 as a layer's name.
pub(crate) fn layer_digest(hash: &[u8; 32]) -> LayerDigest {
    hex(hash).parse().expect("64 hexadecimal digits are a layer digest")
}

/// Hashes and counts what is read through it.
pub(crate) struct HashingReader<R> {
    inner: R,
    hasher: Sha256,
    count: u64,
}

impl<R: Read> HashingReader<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, hasher: Sha256::new(), count: 0 }
    }

    /// The hash of everything read so far, in hexadecimal, and how much it was.
    pub(crate) fn finish(self) -> (String, u64) {
        let hash: [u8; 32] = self.hasher.finalize().into();
        (hex(&hash), self.count)
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        self.count += read as u64;
        Ok(read)
    }
}
