//! The content of uploads: unpacked as it comes, and kept for a moment so that it can be sent a second time.

use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Poll;

use belljar_core::{ByteStream, GuestError};
use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use futures_util::{StreamExt, stream};

/// Bytes from a client, or why there are no more.
pub(crate) type Content = belljar_http::FormContent;

/// Packed bytes are taken in pieces of this size: unpacked, none is more than about a MiB.
const PACKED_AT_ONCE: usize = 1024;
/// What is kept of an upload until the agent has taken the file.
const KEPT: usize = 1 << 20;

/// Unpacks gzip. What is no gzip is noted in `spoiled`.
pub(crate) fn unpacked(packed: Content, spoiled: Arc<OnceLock<String>>) -> Content {
    let state = Some((packed, Bytes::new(), MultiGzDecoder::new(Vec::new())));
    let unpacked = stream::unfold(state, move |state| {
        let spoiled = Arc::clone(&spoiled);
        async move {
            let (mut packed, mut piece, mut decoder) = state?;
            if piece.is_empty() {
                match packed.next().await {
                    Some(Ok(next)) => piece = next,
                    Some(Err(error)) => return Some((Err(error), None)),
                    None => {
                        return match decoder.finish() {
                            Ok(rest) => Some((Ok(Bytes::from(rest)), None)),
                            Err(error) => Some((Err(note(&spoiled, &error)), None)),
                        };
                    }
                }
            }
            let some = piece.split_to(piece.len().min(PACKED_AT_ONCE));
            match decoder.write_all(&some) {
                Ok(()) => Some((Ok(Bytes::from(std::mem::take(decoder.get_mut()))), Some((packed, piece, decoder)))),
                Err(error) => Some((Err(note(&spoiled, &error)), None)),
            }
        }
    });
    unpacked.filter(|piece| std::future::ready(!matches!(piece, Ok(bytes) if bytes.is_empty()))).boxed()
}

fn note(spoiled: &OnceLock<String>, error: &std::io::Error) -> String {
    spoiled.get_or_init(|| format!("it is not gzip: {error}")).clone()
}

struct Source {
    content: Content,
    /// Everything given so far; nothing once that was too much.
    given: Option<VecDeque<Bytes>>,
    bytes: usize,
    /// What is to be given again first.
    again: VecDeque<Bytes>,
}

/// Content that can be sent once more if little of it was sent.
pub(crate) struct Replay(Arc<Mutex<Source>>);

impl Replay {
    pub(crate) fn new(content: Content) -> Self {
        Self(Arc::new(Mutex::new(Source { content, given: Some(VecDeque::new()), bytes: 0, again: VecDeque::new() })))
    }

    /// Begins anew, if nothing was forgotten.
    pub(crate) fn rewind(&self) -> bool {
        let mut source = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match source.given.take() {
            Some(given) => {
                source.again = given;
                true
            }
            None => false,
        }
    }

    /// The content, for the agent.
    pub(crate) fn stream(&self) -> ByteStream {
        let source = Arc::clone(&self.0);
        stream::poll_fn(move |context| {
            let mut source = source.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(piece) = source.again.pop_front() {
                return Poll::Ready(Some(Ok(piece)));
            }
            let polled = source.content.poll_next_unpin(context);
            if let Poll::Ready(Some(Ok(piece))) = &polled {
                source.keep(piece.clone());
            }
            polled.map(|next| next.map(|piece| piece.map_err(|error| lost(&error))))
        })
        .boxed()
    }
}

impl Source {
    fn keep(&mut self, piece: Bytes) {
        self.bytes += piece.len();
        if self.bytes > KEPT {
            self.given = None;
        }
        if let Some(given) = &mut self.given {
            given.push_back(piece);
        }
    }
}

fn lost(error: &str) -> GuestError {
    GuestError::Lost { operation: "read the upload", source: std::io::Error::other(error.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(pieces: &[&[u8]]) -> Content {
        let pieces: Vec<_> = pieces.iter().map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        stream::iter(pieces).boxed()
    }

    fn wait<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn what_was_packed_comes_out_and_noise_does_not() {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(&[7; 3_000_000]).unwrap();
        let packed = packer.finish().unwrap();
        let spoiled = Arc::new(OnceLock::new());
        let (left, right) = packed.split_at(packed.len() / 2);
        let out: Vec<_> = wait(unpacked(content(&[left, right]), Arc::clone(&spoiled)).collect());
        assert!(out.iter().all(|piece| piece.as_ref().unwrap().len() < 2 << 20));
        assert_eq!(out.iter().map(|piece| piece.as_ref().unwrap().len()).sum::<usize>(), 3_000_000);
        assert!(spoiled.get().is_none());
        let out: Vec<_> = wait(unpacked(content(&[b"not packed"]), Arc::clone(&spoiled)).collect());
        assert!(out.last().unwrap().is_err() && spoiled.get().is_some());
    }

    #[test]
    fn little_can_be_sent_again_and_much_cannot() {
        let replay = Replay::new(content(&[b"a", b"b", b"c"]));
        let mut first = replay.stream();
        assert_eq!(wait(first.next()).unwrap().unwrap(), "a");
        drop(first);
        assert!(replay.rewind());
        let all: Vec<_> = wait(replay.stream().map(Result::unwrap).collect());
        assert_eq!(all.concat(), b"abc");
        let replay = Replay::new(content(&[&vec![0; KEPT + 1]]));
        let _sent: Vec<_> = wait(replay.stream().collect());
        assert!(!replay.rewind());
    }
}
