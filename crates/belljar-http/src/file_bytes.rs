//! The bytes of files on their way out of a sandbox.

use belljar_core::{ByteStream, GuestError};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};

/// The first bytes of a file: one that grows meanwhile is cut where its size said.
pub fn at_most(bytes: ByteStream, length: u64) -> impl Stream<Item = Result<Bytes, GuestError>> + Send {
    stream::unfold((bytes, length), |(mut bytes, left)| async move {
        if left == 0 {
            return None;
        }
        let piece = bytes.next().await?;
        let piece = piece.map(|mut piece| {
            piece.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            piece
        });
        let left = left - piece.as_ref().map_or(left, |piece| piece.len() as u64);
        Some((piece, (bytes, left)))
    })
}
