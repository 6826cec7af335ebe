//! Frames from strangers: whole, in pieces, too large, cut short.

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use proptest::prelude::*;

use super::*;

fn incoming(pieces: Vec<Vec<u8>>) -> Incoming {
    Incoming::new(Body::from_stream(stream::iter(pieces.into_iter().map(|piece| Ok::<_, std::io::Error>(Bytes::from(piece))))))
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

#[test]
fn a_message_is_the_same_however_it_was_cut() {
    let bytes = [frame(&serde_json::json!({ "a": 1 })), frame(&serde_json::json!({ "a": 2 }))].concat();
    for cut in 0..=bytes.len() {
        let mut incoming = incoming(vec![bytes[..cut].to_vec(), bytes[cut..].to_vec()]);
        wait(async {
            for expected in [1, 2] {
                let message: serde_json::Value = incoming.next().await.unwrap().unwrap();
                assert_eq!(message["a"], expected);
            }
            assert!(incoming.next::<serde_json::Value>().await.unwrap().is_none());
        });
    }
}

#[test]
fn what_is_too_large_or_compressed_or_cut_short_is_refused_without_waiting_for_it() {
    for bytes in [vec![0, 0xff, 0xff, 0xff, 0xff], vec![1, 0, 0, 0, 2, b'{', b'}'], vec![0, 0, 0, 0, 9, b'{'], vec![0, 0, 0]] {
        assert!(wait(incoming(vec![bytes]).next::<serde_json::Value>()).is_err());
    }
}

proptest! {
    #[test]
    fn noise_is_an_error_or_nothing_and_never_a_panic(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..6)) {
        let mut incoming = incoming(pieces);
        wait(async { while let Ok(Some(_)) = incoming.next::<serde_json::Value>().await {} });
    }
}
