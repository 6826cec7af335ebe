//! Requests that are to have one effect, however often they are sent.

use std::sync::Arc;

use belljar_ports::{Once, Reserved, StoreError};
use belljar_types::{EndCause, Quota, SandboxEnd, SandboxState, Timestamp};

use crate::bed::{Bed, UNBOUNDED, sandbox};

fn once(key: &str, fingerprint: u8) -> Once {
    Once { key: key.to_owned(), fingerprint: [fingerprint; 32] }
}

pub(crate) async fn the_same_request_finds_its_sandbox(bed: &Bed) {
    let project = bed.add_project("one", Quota { sandboxes: 1, ..UNBOUNDED }).await;
    // Whatever a client may send as a key, up to its length.
    for key in ["a", "\u{0}", &"long ".repeat(2000)] {
        let mut made = sandbox(&project);
        assert_eq!(bed.store.repeated(&project, &once(key, 1)).await.unwrap(), None);
        assert_eq!(bed.store.reserve(bed.epoch, &made, Some(&once(key, 1))).await.unwrap(), Reserved::New);
        // There is no room for another, and none is needed.
        let again = bed.store.reserve(bed.epoch, &sandbox(&project), Some(&once(key, 1))).await.unwrap();
        assert_eq!(again, Reserved::Before(Box::new(made.clone())));
        assert_eq!(bed.store.repeated(&project, &once(key, 1)).await.unwrap().as_ref(), Some(&made));
        bed.advance(&mut made, SandboxState::Failed).await;
        let later = bed.store.reserve(bed.epoch, &sandbox(&project), Some(&once(key, 1))).await.unwrap();
        assert_eq!(later, Reserved::Before(Box::new(made)));
    }
    // Another project's key is another key.
    assert_eq!(bed.store.reserve(bed.epoch, &sandbox(&bed.project), Some(&once("a", 9))).await.unwrap(), Reserved::New);
    // Made at 1,000,000; forgotten after that.
    bed.store.forget(bed.epoch, Timestamp(1_000_001)).await.unwrap();
    assert_eq!(bed.store.reserve(bed.epoch, &sandbox(&project), Some(&once("a", 2))).await.unwrap(), Reserved::New);
}

pub(crate) async fn a_request_that_made_nothing_may_be_sent_again(bed: &Bed) {
    let mut first = sandbox(&bed.project);
    bed.store.reserve(bed.epoch, &first, Some(&once("a", 1))).await.unwrap();
    let was = first.state;
    first.state = SandboxState::Failed;
    first.end = Some(SandboxEnd { cause: EndCause::NotMade, detail: "the server ended".to_owned(), at: Timestamp(1_000_000) });
    bed.store.record(bed.epoch, was, first.execution(), &first).await.unwrap();
    assert_eq!(bed.store.repeated(&bed.project, &once("a", 1)).await.unwrap(), None);
    let other = bed.store.reserve(bed.epoch, &sandbox(&bed.project), Some(&once("a", 2))).await;
    assert!(matches!(&other, Err(StoreError::KeyReused { .. })), "{other:?}");
    let second = sandbox(&bed.project);
    assert_eq!(bed.store.reserve(bed.epoch, &second, Some(&once("a", 1))).await.unwrap(), Reserved::New);
    let third = bed.store.reserve(bed.epoch, &sandbox(&bed.project), Some(&once("a", 1))).await.unwrap();
    assert_eq!(third, Reserved::Before(Box::new(second)), "and then it has had its effect");
    assert_eq!(bed.count().await, 2);
}

pub(crate) async fn the_same_key_for_another_request_is_refused(bed: &Bed) {
    bed.store.reserve(bed.epoch, &sandbox(&bed.project), Some(&once("a", 1))).await.unwrap();
    let answer = bed.store.reserve(bed.epoch, &sandbox(&bed.project), Some(&once("a", 2))).await;
    assert!(matches!(&answer, Err(StoreError::KeyReused { key }) if key == "a"), "{answer:?}");
    let asked = bed.store.repeated(&bed.project, &once("a", 2)).await;
    assert!(matches!(&asked, Err(StoreError::KeyReused { key }) if key == "a"), "{asked:?}");
    assert_eq!(bed.count().await, 1);
}

pub(crate) async fn fifty_equal_requests_make_one_sandbox(bed: &Bed) {
    let attempts: Vec<_> = (0..50)
        .map(|_| {
            let (store, epoch, sandbox) = (Arc::clone(&bed.store), bed.epoch, sandbox(&bed.project));
            tokio::spawn(async move { (sandbox.id.clone(), store.reserve(epoch, &sandbox, Some(&once("same", 7))).await.unwrap()) })
        })
        .collect();
    let (mut new, mut before) = (Vec::new(), Vec::new());
    for attempt in attempts {
        match attempt.await.unwrap() {
            (id, Reserved::New) => new.push(id),
            (_, Reserved::Before(sandbox)) => before.push(sandbox.id),
        }
    }
    assert_eq!((new.len(), before.len()), (1, 49));
    assert!(before.iter().all(|id| *id == new[0]));
    assert_eq!(bed.count().await, 1);
}

pub(crate) async fn a_refused_request_leaves_its_key_free(bed: &Bed) {
    let project = bed.add_project("none", Quota { sandboxes: 0, ..UNBOUNDED }).await;
    let answer = bed.store.reserve(bed.epoch, &sandbox(&project), Some(&once("a", 1))).await;
    assert!(matches!(answer, Err(StoreError::OverQuota { .. })), "{answer:?}");
    bed.store.set_quota(&project, &UNBOUNDED).await.unwrap();
    assert_eq!(bed.store.reserve(bed.epoch, &sandbox(&project), Some(&once("a", 2))).await.unwrap(), Reserved::New);
}
