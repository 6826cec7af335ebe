//! The bytes of an archive, whatever they were compressed with, watched for bombs while they flow.
//!
//! The format is told by the first bytes, not by a file name or media type, so that a wrong label cannot choose the decoder.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{ArchiveLimits, Refusal};

/// 128 MiB: what the `zstd` program itself accepts without being told otherwise.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;
/// Tar pads and names its entries; the raw stream may be this much longer than the files in it.
const FRAMING_BYTES_PER_ENTRY: u64 = 8 << 10;

struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Reads plain tar bytes out of a plain, gzip or zstd stream.
pub(crate) struct Decompressed<'a> {
    inner: Box<dyn Read + 'a>,
    consumed: Arc<AtomicU64>,
    compressed: bool,
    produced: u64,
    limits: ArchiveLimits,
}

impl<'a> Decompressed<'a> {
    /// Looks at the first bytes and puts the right decoder in front.
    pub(crate) fn new(reader: impl Read + 'a, limits: ArchiveLimits) -> io::Result<Self> {
        let consumed = Arc::new(AtomicU64::new(0));
        let mut input = BufReader::with_capacity(64 << 10, Counted { inner: reader, count: Arc::clone(&consumed) });
        let start = input.fill_buf()?;
        let (inner, compressed): (Box<dyn Read + 'a>, bool) = match start {
            [0x1f, 0x8b, ..] => (Box::new(flate2::bufread::MultiGzDecoder::new(input)), true),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(input)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
                (Box::new(decoder), true)
            }
            _ => (Box::new(input), false),
        };
        Ok(Self { inner, consumed, compressed, produced: 0, limits })
    }

    /// Whether there is a decoder in front at all.
    pub(crate) fn is_compressed(&self) -> bool {
        self.compressed
    }

    fn guard(&self) -> Result<(), Refusal> {
        let ArchiveLimits { total_bytes, entries, ratio, ratio_free_bytes, .. } = self.limits;
        if self.produced > total_bytes.saturating_add(entries.saturating_mul(FRAMING_BYTES_PER_ENTRY)) {
            return Err(Refusal::TotalSize { limit: total_bytes });
        }
        let allowed = self.consumed.load(Ordering::Relaxed).saturating_mul(ratio);
        if self.compressed && self.produced > ratio_free_bytes && self.produced > allowed {
            return Err(Refusal::Ratio { limit: ratio });
        }
        Ok(())
    }
}

impl Read for Decompressed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.produced += read as u64;
        self.guard().map_err(io::Error::other)?;
        Ok(read)
    }
}
