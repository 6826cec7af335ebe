//! Two lines joined by a pipe, under a clock that only these tests move.

use belljar_guest_protocol::MAX_FRAME;
use tokio::io::{DuplexStream, duplex};

use super::*;

fn pair(room: usize) -> (Line<DuplexStream>, Line<DuplexStream>) {
    let (a, b) = duplex(room);
    let mut lines = (Line::new(a, MAX_FRAME, Patience::default()), Line::new(b, MAX_FRAME, Patience::default()));
    lines.0.begin(1);
    lines.1.begin(1);
    lines
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_is_kept_alive_by_heartbeats_from_both_sides() {
    let (mut a, mut b) = pair(4096);
    let slow = async {
        b.hold(tokio::time::sleep(Duration::from_secs(300))).await.unwrap();
        b.send(FrameKind::Response, Bytes::from_static(b"late")).await.unwrap();
    };
    let (frame, ()) = tokio::join!(a.receive(), slow);
    assert_eq!(frame.unwrap().body, "late");
}

#[tokio::test(start_paused = true)]
async fn silence_is_given_up() {
    let (mut a, b) = pair(4096);
    assert!(matches!(a.receive().await, Err(LineError::Silent)));
    drop(b);
}

#[tokio::test(start_paused = true)]
async fn two_sides_that_write_at_once_do_not_block_each_other_for_ever() {
    let (mut a, mut b) = pair(16);
    let body = Bytes::from(vec![7; 100_000]);
    let (sent, also_sent) = tokio::join!(a.send(FrameKind::Data, body.clone()), b.send(FrameKind::Data, body.clone()));
    sent.unwrap();
    also_sent.unwrap();
    assert_eq!(a.receive().await.unwrap().body, body);
    assert_eq!(b.receive().await.unwrap().body, body);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_holds_makes_the_writer_wait_and_loses_nothing() {
    let (mut a, mut b) = pair(64);
    let writer = async {
        for n in 0u8..50 {
            b.send(FrameKind::Data, Bytes::from(vec![n; 1000])).await.unwrap();
        }
        b
    };
    let reader = async {
        a.hold(tokio::time::sleep(Duration::from_secs(90))).await.unwrap();
        for n in 0u8..50 {
            assert_eq!(a.receive().await.unwrap().body, vec![n; 1000]);
        }
    };
    tokio::join!(writer, reader);
}

#[tokio::test]
async fn a_hang_up_is_told() {
    let (mut a, b) = pair(64);
    drop(b);
    assert!(matches!(a.receive().await, Err(LineError::Closed)));
    assert!(!a.is_quiet());
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_drips_in_is_given_up() {
    let (io, mut other) = duplex(4096);
    let mut line = Line::new(io, MAX_FRAME, Patience::default());
    line.begin(1);
    let drip = async {
        other.write_all(&frame_header(FrameKind::Data, 1, 1000)).await.unwrap();
        loop {
            tokio::time::sleep(Duration::from_secs(3)).await;
            other.write_all(b"x").await.unwrap();
        }
    };
    tokio::select! {
        result = line.receive() => assert!(matches!(result, Err(LineError::Silent))),
        () = drip => {}
    }
}
