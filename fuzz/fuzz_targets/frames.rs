//! The decoder on any bytes, in any pieces: no panic, no frame beyond the bound.
#![no_main]

use belljar_guest_protocol::{Decoder, FRAME_HEADER};

libfuzzer_sys::fuzz_target!(|pieces: Vec<Vec<u8>>| {
    let mut decoder = Decoder::new(4096);
    for piece in pieces {
        decoder.feed(&piece);
        loop {
            assert!(decoder.wanted() <= 4096 + FRAME_HEADER);
            match decoder.next_frame() {
                Ok(Some(frame)) => assert!(frame.body.len() <= 4096),
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
});
