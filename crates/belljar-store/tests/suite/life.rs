//! A sandbox's life as the store sees it: what was written is read back, by the right writer only.

use std::sync::Arc;

use belljar_ports::StoreError;
use belljar_types::{Epoch, ExecutionId, Quota, SandboxId, SandboxState, Timestamp};

use crate::bed::{Bed, UNBOUNDED, become_state, sandbox};

pub(crate) async fn a_life_is_read_back_as_it_was_written(bed: &Bed) {
    let mut made = sandbox(&bed.project);
    made.metadata = [("who".to_owned(), "me \u{0} \"'\u{1F980}".to_owned())].into();
    made.expires_at = Some(Timestamp(u64::MAX));
    bed.reserve(&made).await;
    assert_eq!(bed.get(&made).await.as_ref(), Some(&made));

    use SandboxState::{Paused, Pausing, Resuming, Running, Stopped, Stopping};
    for next in [Running, Pausing, Paused, Resuming, Running, Stopping, Stopped] {
        assert!(bed.store.unended().await.unwrap().0.contains(&made), "{} has not ended", made.state);
        bed.advance(&mut made, next).await;
        assert_eq!(bed.get(&made).await.as_ref(), Some(&made));
    }
    assert_eq!(bed.store.unended().await.unwrap(), (vec![], vec![]));
    assert_eq!(bed.store.sandbox(&bed.project, &SandboxId::random()).await.unwrap(), None);
}

pub(crate) async fn a_writer_that_is_wrong_about_the_sandbox_changes_nothing(bed: &Bed) {
    let mut made = bed.reserved().await;
    bed.advance(&mut made, SandboxState::Running).await;
    let mut wish = made.clone();
    become_state(&mut wish, SandboxState::Failed);

    let attempts = [
        (SandboxState::Creating, made.execution().clone(), "running"),
        (SandboxState::Running, ExecutionId::random(), "another execution"),
    ];
    for (was, execution, expected) in attempts {
        match bed.store.record(bed.epoch, was, &execution, &wish).await {
            Err(StoreError::Conflict { id, found }) => assert_eq!((id, found.as_str()), (made.id.clone(), expected)),
            other => panic!("{expected}: {other:?}"),
        }
        assert_eq!(bed.get(&made).await.as_ref(), Some(&made));
    }
    let unknown = sandbox(&bed.project);
    let answer = bed.store.record(bed.epoch, SandboxState::Creating, unknown.execution(), &unknown).await;
    assert!(matches!(answer, Err(StoreError::Conflict { found, .. }) if found == "absent"));

    // A new run is written by whoever knows the old one, who is then wrong.
    let old = made.execution().clone();
    made.spec.execution = ExecutionId::random();
    bed.store.record(bed.epoch, SandboxState::Running, &old, &made).await.unwrap();
    assert_eq!(bed.get(&made).await.as_ref(), Some(&made));
    assert!(matches!(bed.store.record(bed.epoch, SandboxState::Running, &old, &wish).await, Err(StoreError::Conflict { .. })));
}

pub(crate) async fn an_older_epoch_changes_nothing(bed: &Bed) {
    let mut made = bed.reserved().await;
    bed.advance(&mut made, SandboxState::Running).await;
    let ended = {
        let mut ended = bed.reserved().await;
        bed.advance(&mut ended, SandboxState::Failed).await;
        ended
    };
    let next = bed.store.begin_epoch().await.unwrap();
    assert!(next > bed.epoch);

    let mut wish = made.clone();
    become_state(&mut wish, SandboxState::Stopped);
    for stale in [bed.epoch, Epoch(0), Epoch(next.0 + 1)] {
        let fenced = [
            bed.store.reserve(stale, &sandbox(&bed.project), None).await.map(drop),
            bed.store.record(stale, SandboxState::Running, made.execution(), &wish).await,
            bed.store.forget(stale, Timestamp(u64::MAX)).await.map(drop),
        ];
        for answer in fenced {
            assert!(matches!(answer, Err(StoreError::Fenced { current, ours }) if current == next.0 && ours == stale.0), "{answer:?}");
        }
    }
    assert_eq!(bed.count().await, 2);
    assert_eq!(bed.get(&made).await, Some(made));
    assert_eq!(bed.get(&ended).await, Some(ended));
}

pub(crate) async fn nothing_of_an_older_epoch_arrives_after_a_new_one_began(bed: &Bed) {
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let (store, project, epoch) = (Arc::clone(&bed.store), bed.project.clone(), bed.epoch);
            tokio::spawn(async move {
                let mut written = 0;
                loop {
                    match store.reserve(epoch, &sandbox(&project), None).await {
                        Ok(_) => written += 1,
                        Err(StoreError::Fenced { .. }) => return written,
                        Err(error) => panic!("{error:?}"),
                    }
                }
            })
        })
        .collect();
    // Once they are all at it.
    while bed.count().await < 20 {}
    bed.store.begin_epoch().await.unwrap();
    let when_it_began = bed.count().await;
    let mut acknowledged = 0;
    for writer in writers {
        acknowledged += writer.await.unwrap();
    }
    assert_eq!((bed.count().await, acknowledged), (when_it_began, when_it_began));
}

/// A client goes away, and the server drops its request wherever that stands.
pub(crate) async fn a_verb_given_up_half_way_is_done_or_not_done(bed: &Bed) {
    for patience in 0..120 {
        let (store, epoch, mut made) = (Arc::clone(&bed.store), bed.epoch, sandbox(&bed.project));
        made.metadata = [("a".to_owned(), "b".to_owned())].into();
        let verb = tokio::spawn(async move { store.reserve(epoch, &made, None).await.map(drop) });
        for _ in 0..patience {
            tokio::task::yield_now().await;
        }
        verb.abort();
        if let Ok(finished) = verb.await {
            finished.unwrap();
        }
    }
    // Wholly or not at all: as many as there are were charged, and the next one finds the store as usual.
    let count = bed.count().await;
    let sandboxes = u32::try_from(count).unwrap() + 1;
    bed.store.set_quota(&bed.project, &Quota { sandboxes, ..UNBOUNDED }).await.unwrap();
    bed.reserved().await;
    let answer = bed.store.reserve(bed.epoch, &sandbox(&bed.project), None).await;
    assert!(matches!(answer, Err(StoreError::OverQuota { resource: "sandboxes", .. })), "{answer:?}");
}

pub(crate) async fn only_what_ended_long_ago_is_forgotten(bed: &Bed) {
    let live = bed.reserved().await;
    let mut ended = bed.reserved().await;
    ended.metadata = [("a".to_owned(), "b".to_owned())].into();
    bed.advance(&mut ended, SandboxState::Failed).await;

    // It ended at 3,000,000.
    assert_eq!(bed.store.forget(bed.epoch, Timestamp(3_000_000)).await.unwrap(), 0);
    assert_eq!(bed.count().await, 2);
    assert_eq!(bed.store.forget(bed.epoch, Timestamp(3_000_001)).await.unwrap(), 1);
    assert_eq!(bed.get(&ended).await, None);
    assert_eq!(bed.get(&live).await, Some(live));
    assert_eq!(bed.store.forget(bed.epoch, Timestamp(u64::MAX)).await.unwrap(), 0);
}

pub(crate) async fn two_sandboxes_cannot_have_one_id(bed: &Bed) {
    let first = bed.reserved().await;
    let mut second = sandbox(&bed.add_project("second", UNBOUNDED).await);
    second.id = first.id.clone();
    let answer = bed.store.reserve(bed.epoch, &second, None).await;
    assert!(matches!(answer, Err(StoreError::Exists { what: "sandbox", .. })), "{answer:?}");
    assert_eq!(bed.get(&first).await, Some(first));
    assert_eq!(bed.get(&second).await, None);
    // Nothing was charged either: a project with nothing can be removed.
    bed.store.remove_project(&second.project).await.unwrap();
}

pub(crate) async fn a_store_that_works_says_so(bed: &Bed) {
    bed.store.check().await.unwrap();
    bed.store.check().await.unwrap();
    bed.store.close().await;
    assert!(matches!(bed.store.check().await, Err(StoreError::Database { .. })));
}
