//! Whatever the bytes are and however they are cut, the decoder gives the same frames or an error, in bounded memory.

use proptest::prelude::*;

use super::*;

fn kind() -> impl Strategy<Value = FrameKind> {
    (1u8..=14).prop_map(|byte| FrameKind::from_byte(byte).unwrap())
}

proptest! {
    #[test]
    fn frames_survive_any_cut(frames in proptest::collection::vec((kind(), any::<u16>(), proptest::collection::vec(any::<u8>(), 0..300)), 0..8), cut in 1usize..64) {
        let mut wire = Vec::new();
        for (kind, call, body) in &frames {
            wire.extend_from_slice(&encode_frame(*kind, *call, body));
        }
        let mut decoder = Decoder::new(300);
        let mut seen = Vec::new();
        for piece in wire.chunks(cut) {
            decoder.feed(piece);
            while let Some(frame) = decoder.next_frame().unwrap() {
                seen.push((frame.kind, frame.call, frame.body.to_vec()));
            }
        }
        prop_assert!(decoder.is_empty());
        prop_assert_eq!(seen, frames);
    }

    #[test]
    fn rubbish_never_panics_and_never_asks_for_more_than_the_bound(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let mut decoder = Decoder::new(1024);
        for byte in bytes {
            prop_assert!(decoder.lacking() <= decoder.wanted() && decoder.wanted() <= 1024 + 2 * FRAME_HEADER);
            decoder.feed(&[byte]);
            match decoder.next_frame() {
                Ok(Some(frame)) => prop_assert!(frame.body.len() <= 1024),
                Ok(None) => {}
                Err(_) => return Ok(()),
            }
        }
    }
}

#[test]
fn a_header_that_claims_too_much_is_refused_before_its_body_comes() {
    let mut decoder = Decoder::new(1024);
    decoder.feed(&frame_header(FrameKind::Data, 0, u32::MAX));
    assert_eq!(decoder.next_frame(), Err(FrameError::TooLong { length: u32::MAX, limit: 1024 }));
}
