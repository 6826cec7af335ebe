//! Agents that are there, say so all the time, and never get anything done: nobody waits for them for ever.

use std::sync::Arc;
use std::time::Duration;

use belljar_guest_protocol::wire::{FileBody, OutputHeader};
use belljar_guest_protocol::{Frame, FrameKind, encode};
use belljar_ports::{Guest, GuestError};
use belljar_types::{ByteRange, ProcessSpec, StreamKind, WriteOptions};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::Notify;

use crate::agent::{Rogue, client};
use crate::{file, path, process};

async fn only_heartbeats(mut rogue: Rogue, _: Frame) {
    while rogue.say(FrameKind::Heartbeat, 1, b"").await {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_takes_no_content_is_given_up() {
    let (client, _) = client(only_heartbeats);
    let endless = futures_util::stream::iter(std::iter::repeat_with(|| Ok(Bytes::from(vec![0; 100_000])))).boxed();
    assert!(matches!(client.write_file(&path(), &WriteOptions::default(), endless).await, Err(GuestError::Lost { .. })));
    let little = futures_util::stream::iter([Ok(Bytes::from_static(b"x"))]).boxed();
    assert!(matches!(client.write_file(&path(), &WriteOptions::default(), little).await, Err(GuestError::Lost { .. })));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_gives_no_content_is_given_up() {
    let (client, _) = client(|mut rogue, request| async move {
        rogue.say(FrameKind::Response, 1, &encode(&FileBody::from(&file()))).await;
        only_heartbeats(rogue, request).await;
    });
    let mut content = client.read_file(&path(), ByteRange::default(), None).await.unwrap();
    assert!(matches!(content.bytes.next().await, Some(Err(GuestError::Lost { .. }))));
}

/// As an agent is whose program does not listen while it says something.
#[tokio::test(start_paused = true)]
async fn a_program_may_say_much_before_it_listens_again() {
    const PIECE: usize = 128 << 10;
    let (client, _) = client(|mut rogue, _| async move {
        rogue.say(FrameKind::Response, 1, &encode(&())).await;
        while let Some(frame) = rogue.frame().await {
            match frame.kind {
                FrameKind::Data => {
                    for _ in 0..16 {
                        rogue.say(FrameKind::Data, 1, &[7; PIECE]).await;
                    }
                }
                FrameKind::End => {
                    rogue.say(FrameKind::End, 1, b"").await;
                }
                _ => {}
            }
        }
    });
    let (mut from, mut to) = client.connect(80).await.unwrap().split();
    let send = async {
        for _ in 0..16 {
            to.write(Bytes::from(vec![1; PIECE])).await.unwrap();
        }
        to.finish().await.unwrap();
    };
    let hear = async {
        let mut heard = 0;
        while let Some(bytes) = from.read().await.unwrap() {
            heard += bytes.len();
        }
        heard
    };
    let both = async { tokio::join!(send, hear) };
    let ((), heard) = tokio::time::timeout(Duration::from_secs(3600), both).await.expect("neither waits for the other for ever");
    assert_eq!(heard, 16 * 16 * PIECE);
}

/// It writes and never reads, so that the client's acknowledgements have nowhere to go.
#[tokio::test]
async fn a_reader_that_goes_is_not_kept_by_an_agent_that_does_not_listen() {
    let spec = ProcessSpec::new(["x"]);
    let (id, hung_up) = (spec.id.clone(), Arc::new(Notify::new()));
    let told = Arc::clone(&hung_up);
    let (client, _) = client(move |mut rogue, _| {
        let (id, told) = (id.clone(), Arc::clone(&told));
        async move {
            rogue.say(FrameKind::Response, 1, &process(&id)).await;
            let mut offset = 0;
            let mut next = || {
                let header = OutputHeader { stream: StreamKind::Stdout, offset };
                offset += 1;
                [&header.to_bytes()[..], b"x"].concat()
            };
            // Once the client is stuck it takes no more output either, but heartbeats have to go on.
            while rogue.say(FrameKind::Output, 1, &next()).await {}
            told.notify_one();
        }
    });
    let (_, mut output) = client.start_attached(&spec).await.unwrap();
    let read = async { while let Some(Ok(_)) = output.next().await {} };
    // The client's way out holds 64 KiB; that it is full is seen by nothing more coming.
    assert!(tokio::time::timeout(Duration::from_secs(2), read).await.is_err(), "the stream goes on or waits");
    drop(output);
    tokio::time::timeout(Duration::from_secs(60), hung_up.notified()).await.expect("the client hangs up when its reader has gone");
}
