//! Whatever frames an agent sends, in whatever order: no panic, no wait without end, output without holes, and never more than was asked for.

use std::future::Future;
use std::sync::atomic::Ordering;

use belljar_guest_protocol::wire::{EventBody, ExitBody, FileBody, Notice, OutputHeader};
use belljar_guest_protocol::{FrameKind, MAX_FRAME, encode, encode_frame};
use belljar_ports::{Guest, GuestError};
use belljar_types::{ByteRange, FileEvent, FileEventKind, ListOptions, Offsets, OutputEvent, ProcessId, SearchQuery, StreamKind};
use futures_util::StreamExt;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::agent::client;
use crate::{exit, file, path, piece, process};

const ASKED: u64 = 700;

/// Frames of every kind: mostly such as could be, so that streams get past their first one.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let stream = || prop_oneof![Just(StreamKind::Stdout), Just(StreamKind::Stderr)];
    let body = prop_oneof![
        6 => (stream(), 0u64..12, vec(any::<u8>(), 0..4)).prop_map(|(stream, offset, bytes)| piece(stream, offset, &bytes)),
        2 => (0u8..3, 0u64..12, 0u64..16).prop_map(|(stream, from, to)| (FrameKind::Notice, encode(&Notice::Gap { stream, from, to }))),
        1 => Just(exit()),
        1 => (any::<Option<i32>>(), any::<Option<u8>>(), any::<Option<u8>>())
            .prop_map(|(code, signal, cause)| (FrameKind::Notice, encode(&Notice::Exit(ExitBody { code, signal, cause })))),
        2 => Just((FrameKind::End, Vec::new())),
        2 => Just((FrameKind::Heartbeat, Vec::new())),
        2 => Just((FrameKind::Response, encode(&FileBody::from(&file())))),
        2 => Just((FrameKind::Response, encode(&()))),
        3 => vec(any::<u8>(), 0..600).prop_map(|bytes| (FrameKind::Data, bytes)),
        3 => (0usize..9).prop_map(|count| (FrameKind::Items, encode(&vec![FileBody::from(&file()); count]))),
        2 => (0usize..9).prop_map(|count| (FrameKind::Items, encode(&vec![event(); count]))),
        1 => (any_kind(), vec(any::<u8>(), 0..40)),
    ];
    let call = prop_oneof![40 => Just(1u16), 1 => any::<u16>()];
    let frame = prop_oneof![
        60 => (body, call).prop_map(|((kind, body), call)| encode_frame(kind, call, &body).to_vec()),
        1 => vec(any::<u8>(), 1..24),
    ];
    vec(frame, 0..24).prop_map(|frames| frames.concat())
}

fn any_kind() -> impl Strategy<Value = FrameKind> {
    use FrameKind::{Ack, AgentHello, ClientHello, ClientProof, Failure, Request, Welcome};
    prop::sample::select(vec![Ack, AgentHello, ClientHello, ClientProof, Failure, Request, Welcome])
}

fn event() -> EventBody {
    EventBody::from(&FileEvent { kind: FileEventKind::Created, name: b"n".to_vec() })
}

/// Plays with a clock that runs as fast as nothing happens.
fn play<T>(scene: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(scene)
}

/// A client of an agent that answers with `first` and then `says`.
fn saying(first: Vec<u8>, says: Vec<u8>) -> belljar_guest_client::GuestClient {
    let answer = move |mut rogue: crate::agent::Rogue, _| {
        let bytes = [first.clone(), says.clone()].concat();
        async move {
            rogue.raw(&bytes).await;
            while rogue.frame().await.is_some() {}
        }
    };
    client(answer).0
}

fn contiguous(events: &[OutputEvent]) -> Result<(), TestCaseError> {
    let mut next = Offsets::default();
    for (index, event) in events.iter().enumerate() {
        let (stream, from, to) = match event {
            OutputEvent::Data { stream, offset, bytes } => (stream, *offset, offset + bytes.len() as u64),
            OutputEvent::Gap { stream, from, to } => (stream, *from, *to),
            OutputEvent::Exit(_) => {
                prop_assert_eq!(index, events.len() - 1, "nothing comes after the end");
                continue;
            }
        };
        let due = if *stream == StreamKind::Stdout { &mut next.stdout } else { &mut next.stderr };
        prop_assert_eq!(from, *due);
        prop_assert!(to > from);
        *due = to;
    }
    Ok(())
}

proptest! {
    #[test]
    fn output_has_no_holes_whatever_frames_come(says in frames()) {
        let id = ProcessId::random();
        let first = encode_frame(FrameKind::Response, 1, &process(&id)).to_vec();
        let events = play(async {
            let mut output = saying(first, says).attach(&id, Offsets::default()).await.unwrap();
            let mut events = Vec::new();
            while let Some(Ok(event)) = output.next().await {
                events.push(event);
            }
            // An error is the last thing that is said.
            assert!(output.next().await.is_none());
            events
        });
        contiguous(&events)?;
    }

    #[test]
    fn no_more_comes_than_was_asked_for_whatever_frames_come(says in frames(), answered in any::<bool>()) {
        let first = |body: Vec<u8>| if answered { encode_frame(FrameKind::Response, 1, &body).to_vec() } else { Vec::new() };
        play(async {
            let range = ByteRange { offset: 0, length: Some(ASKED) };
            let mut read = 0;
            if let Ok(mut content) = saying(first(encode(&FileBody::from(&file()))), says.clone()).read_file(&path(), range, None).await {
                while let Some(Ok(bytes)) = content.bytes.next().await {
                    read += bytes.len() as u64;
                }
            }
            prop_assert!(read <= ASKED);
            let options = ListOptions { max_entries: 5, ..ListOptions::default() };
            let listed = saying(first(encode(&())), says.clone()).list(&path(), &options).await;
            prop_assert!(listed.map_or(0, |entries| entries.len()) <= 5);
            let query = SearchQuery { user: None, root: path(), name: None, content: None, max_hits: 3 };
            if let Ok(hits) = saying(first(encode(&())), says.clone()).search(&query).await {
                prop_assert!(hits.filter(|hit| std::future::ready(hit.is_ok())).count().await <= 3);
            }
            Ok(())
        })?;
    }

    #[test]
    fn every_verb_ends_whatever_frames_come(says in frames()) {
        play(async {
            let id = ProcessId::random();
            let agent = || saying(Vec::new(), says.clone());
            let _ = agent().hello().await;
            let _ = agent().stat(&path(), None).await;
            let _ = agent().processes().await;
            let _ = agent().ports().await;
            let _ = agent().metrics().await;
            let _ = agent().wait(&id, std::time::Duration::from_secs(1)).await;
            let _ = agent().write_stdin(&id, 0, vec![7; 1000].into()).await;
            let _ = agent().get_xattr(&path(), "user.x", None).await;
            if let Ok(mut tunnel) = agent().connect(80).await {
                let _ = tunnel.write(vec![7; 1000].into()).await;
                let _ = tunnel.finish().await;
                while let Ok(Some(_)) = tunnel.read().await {}
            }
        });
    }

    #[test]
    fn a_reader_that_does_not_read_is_not_read_for(size in 1usize..(MAX_FRAME as usize - OutputHeader::LENGTH), output in any::<bool>()) {
        let id = ProcessId::random();
        let named = id.clone();
        let (client, accepted) = client(move |mut rogue, _| {
            let first = if output { process(&named) } else { encode(&FileBody::from(&file())) };
            async move {
                rogue.say(FrameKind::Response, 1, &first).await;
                let (mut offset, bytes) = (0, vec![0; size]);
                loop {
                    let (kind, body) = if output { piece(StreamKind::Stdout, offset, &bytes) } else { (FrameKind::Data, bytes.clone()) };
                    offset += size as u64;
                    if !rogue.say(kind, 1, &body).await {
                        return;
                    }
                }
            }
        });
        play(async {
            let before_the_end = async {
                if output {
                    let _unread = client.attach(&id, Offsets::default()).await?;
                    std::future::pending::<Result<(), GuestError>>().await
                } else {
                    let _unread = client.read_file(&path(), ByteRange::default(), None).await?;
                    std::future::pending().await
                }
            };
            let waited = tokio::time::timeout(std::time::Duration::from_secs(100), before_the_end).await;
            assert!(waited.is_err(), "{waited:?}");
        });
        // Four pieces wait for the reader, one is in hand, one is read ahead, and one is in the pipe with its successor's beginning.
        let (accepted, bound) = (accepted.load(Ordering::Relaxed), 8 * (size as u64 + 32) + (256 << 10));
        prop_assert!(accepted <= bound, "{} bytes were taken for a reader that takes none, more than {}", accepted, bound);
    }
}
