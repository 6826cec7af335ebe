//! An agent that has the token and breaks every rule there is. The client says so, in bounded time and memory, and never panics.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "rogue/agent.rs"]
mod agent;
#[path = "rogue/any_frames.rs"]
mod any_frames;
#[path = "rogue/stalls.rs"]
mod stalls;

use std::sync::atomic::Ordering;
use std::time::Duration;

use belljar_guest_protocol::wire::{EventBody, ExitBody, FileBody, Notice, OutputHeader, ProcessBody};
use belljar_guest_protocol::{FrameKind, MAX_FRAME, encode, encode_frame, frame_header};
use belljar_ports::{Guest, GuestError};
use belljar_types::{
    ByteRange, FileEvent, FileEventKind, FileInfo, FileKind, GuestPath, ListOptions, Offsets, OutputEvent, ProcessId, ProcessInfo,
    ProcessSpec, SearchQuery, StreamKind, WriteOptions,
};
use bytes::Bytes;
use futures_util::StreamExt;

use crate::agent::client;

fn path() -> GuestPath {
    GuestPath::new("/x").unwrap()
}

fn file() -> FileInfo {
    FileInfo {
        path: path(),
        kind: FileKind::File,
        size: 1,
        mode: 0o644,
        uid: 0,
        gid: 0,
        owner: None,
        group: None,
        modified_nanos: 0,
        symlink_target: None,
        attributes: None,
    }
}

fn process(id: &ProcessId) -> Vec<u8> {
    encode(&ProcessBody::from(&process_info(id)))
}

fn process_info(id: &ProcessId) -> ProcessInfo {
    ProcessInfo {
        id: id.clone(),
        pid: 1,
        argv: Vec::new(),
        tag: None,
        user: "user".parse().unwrap(),
        pty: false,
        started_at_millis: 0,
        exit: None,
        written: Offsets::default(),
        stdin_offset: 0,
    }
}

async fn stat_fails(bytes: Vec<u8>) -> GuestError {
    let (client, _) = client(move |mut rogue, _| {
        let bytes = bytes.clone();
        async move {
            rogue.raw(&bytes).await;
            while rogue.frame().await.is_some() {}
        }
    });
    client.stat(&path(), None).await.unwrap_err()
}

#[tokio::test]
async fn malformed_answers_are_told_as_such() {
    let misbehaviours = [
        ("oversized", frame_header(FrameKind::Response, 1, u32::MAX).to_vec()),
        ("just over", frame_header(FrameKind::Response, 1, MAX_FRAME + 1).to_vec()),
        ("unknown kind", vec![0, 0, 0, 0, 99, 0, 1, 0]),
        ("unknown flags", vec![0, 0, 0, 0, 6, 1, 1, 0]),
        ("another call", encode_frame(FrameKind::Response, 7, &encode(&FileBody::from(&file()))).to_vec()),
        ("out of turn", encode_frame(FrameKind::Data, 1, b"x").to_vec()),
        ("a request", encode_frame(FrameKind::Request, 1, b"xx").to_vec()),
        ("rubbish", encode_frame(FrameKind::Response, 1, &[0xff; 64]).to_vec()),
        ("nothing", encode_frame(FrameKind::Response, 1, &[]).to_vec()),
        ("absurd count", encode_frame(FrameKind::Response, 1, &[0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).to_vec()),
        ("absurd string", encode_frame(FrameKind::Response, 1, &[0x8a, 0x5b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).to_vec()),
        ("deep nesting", encode_frame(FrameKind::Response, 1, &vec![0x81; 200_000]).to_vec()),
        ("trailing", encode_frame(FrameKind::Response, 1, &[encode(&FileBody::from(&file())), vec![0]].concat()).to_vec()),
        ("bad failure", encode_frame(FrameKind::Failure, 1, &[0xff]).to_vec()),
    ];
    for (name, bytes) in misbehaviours {
        let error = stat_fails(bytes).await;
        assert!(matches!(error, GuestError::Misbehaved { .. }), "{name}: {error:?}");
    }
}

#[tokio::test]
async fn a_path_that_no_linux_has_is_refused() {
    for bad in [&b""[..], b"a\0b", &[b'a'; 5000]] {
        let mut body = encode(&FileBody::from(&file()));
        // The path is the first field: an array of ten, then a byte string of two bytes.
        let mut text = vec![0x59];
        text.extend(u16::try_from(bad.len()).unwrap().to_be_bytes());
        text.extend(bad);
        body.splice(1..4, text);
        let error = stat_fails(encode_frame(FrameKind::Response, 1, &body).to_vec()).await;
        assert!(matches!(error, GuestError::Misbehaved { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn silence_hang_ups_and_dripping_end_the_wait() {
    let (silent, _) = client(|rogue, _| async move {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        drop(rogue);
    });
    assert!(matches!(silent.stat(&path(), None).await, Err(GuestError::Lost { .. })));
    let (gone, _) = client(|rogue, _| async move { drop(rogue) });
    assert!(matches!(gone.stat(&path(), None).await, Err(GuestError::Lost { .. })));
    let (dripping, _) = client(|mut rogue, _| async move {
        rogue.raw(&frame_header(FrameKind::Response, 1, 1000)).await;
        while rogue.raw(b"x").await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(matches!(dripping.stat(&path(), None).await, Err(GuestError::Lost { .. })));
}

#[tokio::test(start_paused = true)]
async fn heartbeats_alone_do_not_make_a_caller_wait_for_ever() {
    let (client, _) = client(|mut rogue, _| async move {
        while rogue.say(FrameKind::Heartbeat, 1, b"").await {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    assert!(matches!(client.hello().await, Err(GuestError::Lost { .. })));
    assert!(matches!(client.stat(&path(), None).await, Err(GuestError::Lost { .. })));
    assert!(matches!(client.list(&path(), &ListOptions::default()).await, Err(GuestError::Lost { .. })));
}

/// What a rogue sends as the output of a process.
async fn output(frames: Vec<(FrameKind, Vec<u8>)>) -> Result<Vec<OutputEvent>, GuestError> {
    let spec = ProcessSpec::new(["x"]);
    let id = spec.id.clone();
    let (client, _) = client(move |mut rogue, _| {
        let (frames, id) = (frames.clone(), id.clone());
        async move {
            rogue.say(FrameKind::Response, 1, &process(&id)).await;
            for (kind, body) in frames {
                rogue.say(kind, 1, &body).await;
            }
            while rogue.frame().await.is_some() {}
        }
    });
    let (_, mut stream) = client.start_attached(&spec).await?;
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event?);
    }
    Ok(events)
}

fn piece(stream: StreamKind, offset: u64, bytes: &[u8]) -> (FrameKind, Vec<u8>) {
    (FrameKind::Output, [&OutputHeader { stream, offset }.to_bytes()[..], bytes].concat())
}

fn notice(notice: Notice) -> (FrameKind, Vec<u8>) {
    (FrameKind::Notice, encode(&notice))
}

fn exit() -> (FrameKind, Vec<u8>) {
    notice(Notice::Exit(ExitBody { code: Some(0), signal: None, cause: None }))
}

#[tokio::test]
async fn output_must_be_contiguous_or_explained() {
    let out = StreamKind::Stdout;
    let end = (FrameKind::End, Vec::new());
    let gap = |from, to| notice(Notice::Gap { stream: 0, from, to });
    let honest =
        output(vec![piece(out, 0, b"ab"), gap(2, 5), piece(out, 5, b"c"), piece(StreamKind::Stderr, 0, b"e"), exit(), end.clone()]).await;
    assert_eq!(honest.unwrap().len(), 5);
    let lies = [
        ("skips", vec![piece(out, 1, b"x")]),
        ("repeats", vec![piece(out, 0, b"xx"), piece(out, 1, b"x")]),
        ("empty", vec![piece(out, 0, b"")]),
        ("gap elsewhere", vec![gap(1, 2)]),
        ("gap backwards", vec![piece(out, 0, b"xxx"), gap(3, 1)]),
        ("gap of nothing", vec![gap(0, 0)]),
        ("beyond all bounds", vec![gap(0, u64::MAX), piece(out, u64::MAX, b"x")]),
        ("no such stream", vec![notice(Notice::Gap { stream: 9, from: 0, to: 1 })]),
        ("short header", vec![(FrameKind::Output, vec![0; 5])]),
        ("after the end", vec![exit(), piece(out, 0, b"x")]),
        ("two ends", vec![exit(), exit()]),
        ("end without exit", vec![end.clone()]),
        ("both code and signal", vec![notice(Notice::Exit(ExitBody { code: Some(1), signal: Some(9), cause: None }))]),
        ("signal 200", vec![notice(Notice::Exit(ExitBody { code: None, signal: Some(200), cause: None }))]),
        ("a second answer", vec![(FrameKind::Response, vec![0xf6])]),
    ];
    for (name, frames) in lies {
        let error = output(frames).await.expect_err(name);
        assert!(matches!(error, GuestError::Misbehaved { .. }), "{name}: {error:?}");
    }
}

#[tokio::test]
async fn another_process_is_no_answer() {
    let (client, _) = client(|mut rogue, _| async move {
        rogue.say(FrameKind::Response, 1, &process(&ProcessId::random())).await;
        while rogue.frame().await.is_some() {}
    });
    assert!(matches!(client.start(&ProcessSpec::new(["x"])).await, Err(GuestError::Misbehaved { .. })));
    assert!(matches!(client.attach(&ProcessId::random(), Offsets::default()).await, Err(GuestError::Misbehaved { .. })));
}

#[tokio::test]
async fn endless_lists_are_cut() {
    let endless = |first: Option<Vec<u8>>, body: Vec<u8>| {
        client(move |mut rogue, _| {
            let (first, body) = (first.clone(), body.clone());
            async move {
                if let Some(first) = first {
                    rogue.say(FrameKind::Response, 1, &first).await;
                }
                while rogue.say(FrameKind::Items, 1, &body).await {}
            }
        })
    };
    let files = encode(&vec![FileBody::from(&file()); 500]);
    let (client, accepted) = endless(Some(encode(&())), files);
    assert!(matches!(client.list(&path(), &ListOptions::default()).await, Err(GuestError::Misbehaved { .. })));
    assert!(accepted.load(Ordering::Relaxed) < 80 << 20);
    let (client, _) = endless(None, encode::<[FileBody]>(&[]));
    assert!(matches!(client.processes().await, Err(GuestError::Misbehaved { .. })), "empty pieces make no progress");
    let query = SearchQuery { user: None, root: path(), name: None, content: None, max_hits: 3 };
    let (client, _) = endless(Some(encode(&())), encode(&vec![(b"x".as_slice(), None::<u64>, b"".as_slice()); 4]));
    let mut hits = client.search(&query).await.unwrap();
    assert!(matches!(hits.next().await, Some(Err(GuestError::Misbehaved { .. }))));
}

/// An empty argument is one byte on the way and two dozen here.
#[tokio::test]
async fn millions_of_empty_arguments_are_refused_while_they_are_few() {
    let many = ProcessInfo { argv: vec![Vec::new(); 40_000], ..process_info(&ProcessId::random()) };
    let body = encode(&vec![ProcessBody::from(&many); 4]);
    let (client, accepted) = client(move |mut rogue, _| {
        let body = body.clone();
        async move { while rogue.say(FrameKind::Items, 1, &body).await {} }
    });
    let error = client.processes().await.unwrap_err();
    assert!(matches!(error, GuestError::Misbehaved { .. }), "{error:?}");
    let accepted = accepted.load(Ordering::Relaxed);
    assert!(accepted < 4 << 20, "{accepted} bytes stood for more than the bound");
}

#[tokio::test]
async fn more_content_than_was_asked_for_is_refused() {
    let (client, _) = client(|mut rogue, _| async move {
        rogue.say(FrameKind::Response, 1, &encode(&FileBody::from(&file()))).await;
        while rogue.say(FrameKind::Data, 1, &[0; 1000]).await {}
    });
    let mut content = client.read_file(&path(), ByteRange { offset: 0, length: Some(1500) }, None).await.unwrap();
    assert_eq!(content.bytes.next().await.unwrap().unwrap().len(), 1000);
    assert!(matches!(content.bytes.next().await, Some(Err(GuestError::Misbehaved { .. }))));
    assert!(content.bytes.next().await.is_none());
}

#[tokio::test]
async fn a_reader_that_does_not_read_stops_the_rogue_and_holds_little() {
    let (client, accepted) = client(|mut rogue, _| async move {
        rogue.say(FrameKind::Response, 1, &encode(&())).await;
        let event = EventBody::from(&FileEvent { kind: FileEventKind::Created, name: vec![b'n'; 1000] });
        let body = encode(&vec![event; 200]);
        while rogue.say(FrameKind::Items, 1, &body).await {}
    });
    let mut events = client.watch(&path(), true, None).await.unwrap();
    let (mut before, mut still) = (0, 0);
    while still < 20 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = accepted.load(Ordering::Relaxed);
        still = if now == before { still + 1 } else { 0 };
        before = now;
    }
    assert!(before < 2 << 20, "{before} bytes were taken for a reader that takes none");
    for _ in 0..1000 {
        events.next().await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_refusal_in_the_middle_of_an_upload_is_told_and_lies_about_it_are_not_believed() {
    let failure = encode(&belljar_guest_protocol::Failure::refused(28, "no \u{1b}[31mspace"));
    let (client, _) = client(move |mut rogue, _| {
        let failure = failure.clone();
        async move {
            rogue.frame().await;
            rogue.say(FrameKind::Failure, 1, &failure).await;
            while rogue.frame().await.is_some() {}
        }
    });
    let content = futures_util::stream::iter((0..1000).map(|_| Ok(Bytes::from(vec![0; 100_000])))).boxed();
    let error = client.write_file(&path(), &WriteOptions::default(), content).await.unwrap_err();
    assert!(matches!(&error, GuestError::Refused { errno: 28, message, .. } if !message.contains('\u{1b}')), "{error:?}");
}

#[tokio::test]
async fn a_connection_that_died_while_idle_is_replaced_for_calls_that_may_be_repeated() {
    // Answers the first request of each connection and then dies at the second, without a word.
    let (client, _) = client(|mut rogue, request| async move {
        rogue.say(FrameKind::Response, request.call, &encode(&FileBody::from(&file()))).await;
        rogue.frame().await;
    });
    for _ in 0..5 {
        client.stat(&path(), None).await.unwrap();
    }
    let lost = client.rename(&path(), &path(), None).await;
    assert!(matches!(lost, Err(GuestError::Lost { .. })), "a rename may have been done: {lost:?}");
}
