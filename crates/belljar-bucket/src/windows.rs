//! What was read ahead. A program that reads a file from front to back asks for pieces of 128 KiB; the store is asked for larger ones, and one
//! of them is kept for each open file.

use bytes::Bytes;
use tokio::sync::Mutex;

/// How much is asked for at once. Each open file holds one such piece at most.
pub(crate) const AHEAD: u64 = 2 << 20;

/// One open file that is read.
#[derive(Debug)]
pub(crate) struct Window {
    /// What the file was when it was opened; a file that was replaced meanwhile is not mixed with it.
    pub(crate) tag: Option<String>,
    pub(crate) size: u64,
    piece: Mutex<Piece>,
}

#[derive(Debug, Default)]
struct Piece {
    start: u64,
    bytes: Bytes,
}

impl Window {
    pub(crate) fn new(tag: Option<String>, size: u64) -> Self {
        Self { tag, size, piece: Mutex::default() }
    }

    /// The bytes of a range, from what is there or from the store. Fewer than asked for only at the end of the file.
    pub(crate) async fn read<E>(
        &self,
        offset: u64,
        length: u64,
        fetch: impl AsyncFnOnce(std::ops::Range<u64>) -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        let end = offset.saturating_add(length).min(self.size);
        if offset >= end {
            return Ok(Bytes::new());
        }
        let mut piece = self.piece.lock().await;
        let there = piece.start..piece.start + piece.bytes.len() as u64;
        if !(there.contains(&offset) && end <= there.end) {
            let wanted = offset..offset.saturating_add(length.max(AHEAD)).min(self.size);
            *piece = Piece { start: offset, bytes: fetch(wanted).await? };
        }
        // A store that answers with less than the file has is not trusted to have said all.
        let from = usize::try_from(offset - piece.start).unwrap_or(usize::MAX).min(piece.bytes.len());
        let to = usize::try_from(end - piece.start).unwrap_or(usize::MAX).min(piece.bytes.len());
        Ok(piece.bytes.slice(from..to))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_file_read_from_front_to_back_is_fetched_in_large_pieces() {
        let content: Bytes = (0..3 * AHEAD + 5).map(|at| (at % 251) as u8).collect::<Vec<_>>().into();
        let window = Window::new(None, content.len() as u64);
        let fetches = AtomicU64::new(0);
        let mut seen = Vec::new();
        while seen.len() < content.len() {
            let read = window
                .read(seen.len() as u64, 128 << 10, async |range: std::ops::Range<u64>| {
                    fetches.fetch_add(1, Ordering::Relaxed);
                    Ok::<_, ()>(content.slice(range.start as usize..range.end as usize))
                })
                .await
                .unwrap();
            seen.extend_from_slice(&read);
        }
        assert_eq!(seen, content);
        assert_eq!(fetches.into_inner(), 4);
        let after = window.read(content.len() as u64, 10, async |_| Err::<Bytes, _>("asked for what is not there")).await;
        assert!(after.unwrap().is_empty());
    }
}
