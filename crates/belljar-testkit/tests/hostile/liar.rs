//! A rogue that has the token, proves itself and says hello as it should. Then it lies.

use std::time::Duration;

use belljar_ports::{Guest, GuestError};
use belljar_testkit::path;
use belljar_types::{ByteRange, IsolationClass, ListOptions, ProcessSpec, Signal};
use futures_util::StreamExt;

use crate::scene::Scene;

/// Far beyond every limit of the client's for the verbs that are tried.
const FOR_EVER: Duration = Duration::from_secs(300);

const LIES: [&str; 9] =
    ["oversized", "unknown-kind", "unknown-flags", "another-call", "out-of-turn", "rubbish", "absurd-count", "absurd-length", "deep"];

async fn in_time<T>(what: &str, call: impl Future<Output = Result<T, GuestError>>) -> GuestError {
    match tokio::time::timeout(FOR_EVER, call).await {
        Ok(Err(error)) => error,
        Ok(Ok(_)) => panic!("{what}: a lie was believed"),
        Err(_) => panic!("{what}: the call waits for ever"),
    }
}

fn lying(lie: &str) -> ProcessSpec {
    ProcessSpec { tag: Some(format!("lie-{lie}")), ..ProcessSpec::new(["/bin/true"]) }
}

async fn stat(guest: &dyn Guest, lie: &str) -> GuestError {
    in_time(lie, guest.stat(&path(format!("/lie-{lie}")), None)).await
}

pub(crate) async fn an_agent_that_lies_is_caught_at_every_lie(class: IsolationClass) {
    let scene = Scene::set(class).await;
    let spec = scene.spec("liar");
    scene.runtime.create(&spec).await.expect("this one looks honest at first");
    let guest = scene.runtime.guest(&spec.id).await.expect("it answers");
    let guest = &*guest;
    for lie in LIES {
        let error = stat(guest, lie).await;
        assert!(matches!(error, GuestError::Misbehaved { .. }), "{lie}: {error:?}");
    }
    for (lie, told) in [("endless-list", "more items"), ("empty-list", "an empty piece")] {
        let error = in_time(lie, guest.list(&path(format!("/lie-{lie}")), &ListOptions::default())).await;
        assert!(matches!(&error, GuestError::Misbehaved { detail, .. } if detail.contains(told)), "{lie}: {error:?}");
        scene.assert_small(lie);
    }
    let error = in_time("processes", guest.processes()).await;
    assert!(matches!(&error, GuestError::Misbehaved { detail, .. } if detail.contains("too long")), "{error:?}");
    scene.assert_small("millions of empty arguments");
    let error = in_time("another process", guest.start(&lying("another-process"))).await;
    assert!(matches!(error, GuestError::Misbehaved { .. }), "{error:?}");
    let (_, mut output) = guest.start_attached(&lying("wrong-offset")).await.expect("the first answer is well-formed");
    assert!(matches!(output.next().await, Some(Err(GuestError::Misbehaved { .. }))));

    // Those that only waste time do it side by side.
    let signal_for_ever = async { guest.signal(&"lie-endless-heartbeats".parse().expect("an id"), Signal::TERM).await };
    let lost = tokio::join!(
        stat(guest, "hang-up"),
        stat(guest, "silence"),
        stat(guest, "dripping"),
        in_time("endless heartbeats", signal_for_ever),
        scene.others_work(),
    );
    for error in [lost.0, lost.1, lost.2, lost.3] {
        assert!(matches!(error, GuestError::Lost { .. }), "{error:?}");
    }
    scene.assert_small("after all lies");
    scene.runtime.destroy(&spec.id).await.expect("a liar goes like everybody");
    scene.assert_nothing_left().await;
}

pub(crate) async fn endless_streams_wait_for_their_reader_and_hold_little(class: IsolationClass) {
    let scene = Scene::set(class).await;
    let spec = scene.spec("liar");
    scene.runtime.create(&spec).await.expect("this one looks honest at first");
    let guest = scene.runtime.guest(&spec.id).await.expect("it answers");
    let (_, mut output) = guest.start_attached(&lying("endless-output")).await.expect("output begins");
    let mut content = guest.read_file(&path("/lie-endless-content"), ByteRange::default(), None).await.expect("content begins");
    let mut events = guest.watch(&path("/lie-endless-events"), true, None).await.expect("events begin");
    let mut read = 0;
    while read < 64 << 20 {
        let piece = content.bytes.next().await.expect("it never ends").expect("and is well-formed");
        read += piece.len();
        output.next().await.expect("it never ends").expect("and is well-formed");
        events.next().await.expect("it never ends").expect("and is well-formed");
    }
    // Nobody reads for a while; the rogue goes on as far as it is let.
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        scene.others_work().await;
    }
    scene.assert_small("three endless streams");
    let limited = ByteRange { offset: 0, length: Some(300_000) };
    let mut content = guest.read_file(&path("/lie-endless-content"), limited, None).await.expect("content begins");
    assert!(matches!(content.bytes.next().await, Some(Ok(_))));
    assert!(matches!(content.bytes.next().await, Some(Err(GuestError::Misbehaved { .. }))));
    scene.runtime.destroy(&spec.id).await.expect("a liar goes like everybody");
    assert!(matches!(events.next().await, Some(Ok(_))), "what was there can still be read");
    drop((output, events, content, guest));
    scene.assert_nothing_left().await;
}
