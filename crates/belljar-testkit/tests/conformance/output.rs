//! Output by byte offset: nothing lost within the bound, exact news of what is beyond it.

use std::time::Duration;

use belljar_testkit::{Finished, Lab, sh};
use belljar_types::{IsolationClass, KillCause, Offsets, OutputEvent, Overflow, ProcessSpec, SpoolPolicy, StreamKind, Termination};
use futures_util::StreamExt;

use crate::processes::until;

/// Writes `count` numbered lines of ten bytes.
fn numbered(count: u64) -> Vec<String> {
    vec!["/usr/bin/python3".into(), "-c".into(), format!("import sys\nfor i in range({count}): sys.stdout.write('%09d\\n' % i)")]
}

fn expected(count: u64) -> Vec<u8> {
    (0..count).flat_map(|i| format!("{i:09}\n").into_bytes()).collect()
}

pub(crate) async fn a_hundred_megabytes_arrive_whole(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let mut spec = ProcessSpec::new(["/bin/sh", "-c", "head -c 104857600 /dev/zero | tr '\\0' x"]);
    spec.spool.overflow = Overflow::Slow;
    let (_, mut stream) = sandbox.guest.start_attached(&spec).await.unwrap();
    let mut received = 0u64;
    let exit = loop {
        match stream.next().await.unwrap().unwrap() {
            OutputEvent::Data { stream: StreamKind::Stdout, offset, bytes } => {
                assert_eq!(offset, received);
                assert!(bytes.iter().all(|byte| *byte == b'x'));
                received += bytes.len() as u64;
            }
            OutputEvent::Exit(exit) => break exit,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((received, exit.termination), (100 << 20, Termination::Exited(0)));
    sandbox.destroy().await;
}

pub(crate) async fn streams_stay_apart(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let finished = sh(&*sandbox.guest, "for i in $(seq 100); do echo out$i; echo err$i >&2; done").await;
    let list = |word: &str| (1..=100).map(|i| format!("{word}{i}\n")).collect::<String>();
    assert_eq!(String::from_utf8(finished.stdout).unwrap(), list("out"));
    assert_eq!(String::from_utf8(finished.stderr).unwrap(), list("err"));
    sandbox.destroy().await;
}

pub(crate) async fn a_reader_comes_back_at_its_offset(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let count = 50_000;
    let mut spec = ProcessSpec::new(numbered(count));
    spec.spool = SpoolPolicy { capacity: 1 << 20, overflow: Overflow::Slow };
    sandbox.guest.start(&spec).await.unwrap();
    let (mut all, mut visits) = (Vec::new(), 0);
    'visits: loop {
        let from = Offsets { stdout: all.len() as u64, stderr: 0 };
        let mut stream = sandbox.guest.attach(&spec.id, from).await.unwrap();
        visits += 1;
        let leave_after = all.len() + 60_000;
        while let Some(event) = stream.next().await {
            match event.unwrap() {
                OutputEvent::Data { offset, bytes, .. } => {
                    assert_eq!(offset, all.len() as u64);
                    all.extend_from_slice(&bytes);
                }
                OutputEvent::Exit(_) => break 'visits,
                OutputEvent::Gap { .. } => panic!("fell out although the writer was to be slowed"),
            }
            if all.len() >= leave_after {
                continue 'visits;
            }
        }
    }
    assert!(visits > 2, "the reader left and came back {visits} times");
    assert_eq!(all, expected(count));
    sandbox.destroy().await;
}

pub(crate) async fn two_readers_see_the_same_bytes(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let count = 40_000;
    let mut spec = ProcessSpec::new(numbered(count));
    spec.spool.overflow = Overflow::Slow;
    spec.stdin = false;
    let (_, first) = sandbox.guest.start_attached(&spec).await.unwrap();
    let second = sandbox.guest.attach(&spec.id, Offsets::default()).await.unwrap();
    let (first, second) = tokio::join!(Finished::read(first), Finished::read(second));
    assert_eq!(first.unwrap().stdout, expected(count));
    assert_eq!(second.unwrap().stdout, expected(count));
    sandbox.destroy().await;
}

pub(crate) async fn a_late_reader_is_told_exactly_what_fell_out(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let count = 20_000u64;
    let mut spec = ProcessSpec::new(numbered(count));
    spec.spool = SpoolPolicy { capacity: 65_536, overflow: Overflow::DropOldest };
    sandbox.guest.start(&spec).await.unwrap();
    sandbox.guest.wait(&spec.id, Duration::from_secs(120)).await.unwrap().unwrap();
    let mut stream = sandbox.guest.attach(&spec.id, Offsets::default()).await.unwrap();
    let (mut position, mut kept, mut missing) = (0u64, Vec::new(), 0u64);
    while let Some(event) = stream.next().await {
        match event.unwrap() {
            OutputEvent::Gap { stream: StreamKind::Stdout, from, to } => {
                assert_eq!(from, position);
                missing += to - from;
                position = to;
            }
            OutputEvent::Data { stream: StreamKind::Stdout, offset, bytes } => {
                assert_eq!(offset, position);
                position += bytes.len() as u64;
                kept.extend_from_slice(&bytes);
            }
            OutputEvent::Exit(exit) => assert_eq!(exit.termination, Termination::Exited(0)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(position, count * 10);
    assert!(missing > 0 && kept.len() as u64 >= 60_000 && kept.len() <= 65_536, "{} kept, {missing} missing", kept.len());
    let all = expected(count);
    assert_eq!(kept, all[missing as usize..]);
    sandbox.destroy().await;
}

pub(crate) async fn a_slowed_writer_loses_nothing(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let count = 100_000u64;
    let mut spec = ProcessSpec::new(numbered(count));
    spec.spool = SpoolPolicy { capacity: 65_536, overflow: Overflow::Slow };
    sandbox.guest.start(&spec).await.unwrap();
    // Nobody reads: the writer must stand still with a full spool, and go on when somebody comes.
    let written = || async { sandbox.guest.processes().await.unwrap().iter().find(|p| p.id == spec.id).unwrap().written.stdout };
    until(|| async { written().await >= 60_000 }).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(written().await <= 65_536, "the agent took {} bytes that nobody read", written().await);
    assert_eq!(sandbox.guest.wait(&spec.id, Duration::from_millis(100)).await.unwrap(), None, "it waits");
    let stream = sandbox.guest.attach(&spec.id, Offsets::default()).await.unwrap();
    assert_eq!(Finished::read(stream).await.unwrap().stdout, expected(count));
    sandbox.destroy().await;
}

pub(crate) async fn a_runaway_writer_is_killed_when_so_chosen(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let mut spec = ProcessSpec::new(["/usr/bin/yes"]);
    spec.spool = SpoolPolicy { capacity: 65_536, overflow: Overflow::Kill };
    sandbox.guest.start(&spec).await.unwrap();
    let exit = sandbox.guest.wait(&spec.id, Duration::from_secs(120)).await.unwrap().expect("it was killed");
    assert_eq!(exit.cause, Some(KillCause::Overflow));
    sandbox.destroy().await;
}
