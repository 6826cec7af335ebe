//! What a project may have: bounded to the last unit, however many ask at once, and given back at the end.

use std::sync::Arc;

use belljar_ports::{Reserved, StoreError};
use belljar_types::{Quota, SandboxState};

use crate::bed::{Bed, UNBOUNDED, sandbox};

pub(crate) async fn each_resource_is_bounded_and_named(bed: &Bed) {
    let limits = sandbox(&bed.project).spec.limits;
    let (cpu, memory, disk) = (u64::from(limits.cpu_millis), limits.memory_bytes, limits.disk_bytes);
    let cases = [
        (Quota { sandboxes: 2, ..UNBOUNDED }, "sandboxes", 2, 3),
        (Quota { cpu_millis: 2 * cpu, ..UNBOUNDED }, "cpu_millis", 2 * cpu, 3 * cpu),
        (Quota { memory_bytes: 3 * memory - 1, ..UNBOUNDED }, "memory_bytes", 3 * memory - 1, 3 * memory),
        (Quota { disk_bytes: 2 * disk, ..UNBOUNDED }, "disk_bytes", 2 * disk, 3 * disk),
    ];
    for (index, (quota, name, may_have, would_have)) in cases.into_iter().enumerate() {
        let project_id = bed.add_project(&format!("case-{index}"), quota).await;
        bed.reserve(&sandbox(&project_id)).await;
        bed.reserve(&sandbox(&project_id)).await;
        let third = sandbox(&project_id);
        match bed.store.reserve(bed.epoch, &third, None).await {
            Err(StoreError::OverQuota { project, resource, allowed, wanted }) => {
                assert_eq!((project, resource, allowed, wanted), (project_id, name, may_have, would_have));
            }
            other => panic!("{name}: {other:?}"),
        }
        assert_eq!(bed.get(&third).await, None);
    }
    let nowhere = sandbox(&"nowhere".parse().unwrap());
    assert!(matches!(bed.store.reserve(bed.epoch, &nowhere, None).await, Err(StoreError::Absent { what: "project", .. })));
}

pub(crate) async fn fifty_at_once_get_exactly_what_there_is_room_for(bed: &Bed) {
    let project = bed.add_project("ten", Quota { sandboxes: 10, ..UNBOUNDED }).await;
    let attempts: Vec<_> = (0..50)
        .map(|_| {
            let (store, epoch, sandbox) = (Arc::clone(&bed.store), bed.epoch, sandbox(&project));
            tokio::spawn(async move { store.reserve(epoch, &sandbox, None).await })
        })
        .collect();
    let mut entered = 0;
    for attempt in attempts {
        match attempt.await.unwrap() {
            Ok(answer) => {
                assert_eq!(answer, Reserved::New);
                entered += 1;
            }
            Err(error) => {
                assert!(matches!(error, StoreError::OverQuota { resource: "sandboxes", allowed: 10, wanted: 11, .. }), "{error:?}");
            }
        }
    }
    assert_eq!(entered, 10);
    assert_eq!(bed.store.unended().await.unwrap().0.len(), 10);
}

pub(crate) async fn the_end_frees_what_was_charged(bed: &Bed) {
    let project = bed.add_project("one", Quota { sandboxes: 1, ..UNBOUNDED }).await;
    for end in [SandboxState::Stopped, SandboxState::Failed, SandboxState::Stopped] {
        let mut made = sandbox(&project);
        bed.reserve(&made).await;
        assert!(bed.store.reserve(bed.epoch, &sandbox(&project), None).await.is_err());
        bed.advance(&mut made, SandboxState::Running).await;
        // What is given back is what was charged, even if the limits are written otherwise by then.
        made.spec.limits.memory_bytes *= 4;
        bed.advance(&mut made, SandboxState::Stopping).await;
        assert!(bed.store.reserve(bed.epoch, &sandbox(&project), None).await.is_err(), "it is not gone yet");
        bed.advance(&mut made, end).await;
    }
    bed.store.remove_project(&project).await.unwrap();
}

pub(crate) async fn a_new_epoch_sums_up_anew(bed: &Bed) {
    let project = bed.add_project("two", Quota { sandboxes: 2, ..UNBOUNDED }).await;
    bed.reserve(&sandbox(&project)).await;
    bed.execute("UPDATE projects SET live_sandboxes = 77, live_memory_bytes = -5").await;
    let epoch = bed.store.begin_epoch().await.unwrap();
    assert_eq!(bed.store.reserve(epoch, &sandbox(&project), None).await.unwrap(), Reserved::New);
    let memory_bytes = 3 * sandbox(&project).spec.limits.memory_bytes - 1;
    bed.store.set_quota(&project, &Quota { memory_bytes, ..UNBOUNDED }).await.unwrap();
    let answer = bed.store.reserve(epoch, &sandbox(&project), None).await;
    assert!(matches!(answer, Err(StoreError::OverQuota { resource: "memory_bytes", .. })), "{answer:?}");
}

pub(crate) async fn what_a_project_has_stays_when_its_quota_shrinks(bed: &Bed) {
    let project = bed.add_project("three", Quota { sandboxes: 3, ..UNBOUNDED }).await;
    let mut all = Vec::new();
    for _ in 0..3 {
        let made = sandbox(&project);
        bed.reserve(&made).await;
        all.push(made);
    }
    bed.store.set_quota(&project, &Quota { sandboxes: 1, ..UNBOUNDED }).await.unwrap();
    for made in &mut all {
        let answer = bed.store.reserve(bed.epoch, &sandbox(&project), None).await;
        assert!(matches!(answer, Err(StoreError::OverQuota { allowed: 1, .. })), "{answer:?}");
        bed.advance(made, SandboxState::Failed).await;
    }
    bed.reserve(&sandbox(&project)).await;
}
