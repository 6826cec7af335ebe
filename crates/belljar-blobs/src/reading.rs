//! A blob on its way out, hashed: it ends well only if it is the one that was put.

use std::io;

use belljar_ports::BlobStream;
use belljar_types::hex;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use sha2::{Digest, Sha256};

struct Reading {
    pieces: BlobStream,
    hash: Sha256,
    /// Given on when the next one is there, so that the last is given only if the digest is right.
    held: Option<Bytes>,
}

/// The same pieces, and an error instead of the last where their digest is not the expected one.
pub(crate) fn verified(pieces: BlobStream, key: String, expected: String) -> BlobStream {
    let begin = Reading { pieces, hash: Sha256::new(), held: None };
    Box::pin(stream::unfold(Some(begin), move |reading| next(reading, key.clone(), expected.clone())))
}

async fn next(reading: Option<Reading>, key: String, expected: String) -> Option<(io::Result<Bytes>, Option<Reading>)> {
    let mut reading = reading?;
    loop {
        match reading.pieces.next().await {
            Some(Ok(piece)) => {
                reading.hash.update(&piece);
                if let Some(before) = reading.held.replace(piece) {
                    return Some((Ok(before), Some(reading)));
                }
            }
            Some(Err(error)) => return Some((Err(error), None)),
            None => {
                let found = hex(&reading.hash.finalize());
                if found == expected {
                    return reading.held.map(|last| (Ok(last), None));
                }
                let said = format!("{key} has changed where it is kept: its digest is {found} and was {expected}");
                return Some((Err(io::Error::new(io::ErrorKind::InvalidData, said)), None));
            }
        }
    }
}
