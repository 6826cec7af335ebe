//! Snapshots: seen only when they are whole, fenced and compared like sandboxes, found by name and by family.

use std::time::Duration;

use belljar_ports::{SnapshotCursor, SnapshotFilter, StoreError};
use belljar_types::{
    IsolationClass, Origin, ProjectId, Quota, Sandbox, Snapshot, SnapshotId, SnapshotKind, SnapshotPurpose, SnapshotState, Timestamp,
};

use crate::bed::{Bed, UNBOUNDED, sandbox};

pub(crate) fn snapshot_of(sandbox: &Sandbox, at: u64) -> Snapshot {
    Snapshot {
        id: SnapshotId::random(),
        project: sandbox.project.clone(),
        name: None,
        state: SnapshotState::Making,
        purpose: SnapshotPurpose::Kept,
        kind: SnapshotKind::Memory,
        class: IsolationClass::Gvisor,
        source: sandbox.id.clone(),
        parent: None,
        root: sandbox.root().clone(),
        template: sandbox.template.clone(),
        spec: sandbox.spec.clone(),
        metadata: sandbox.metadata.clone(),
        idle_timeout: sandbox.idle_timeout,
        on_timeout: sandbox.on_timeout,
        auto_resume: sandbox.auto_resume,
        bytes: 0,
        stood_still: Duration::ZERO,
        created_at: Timestamp(at),
        expires_at: None,
    }
}

async fn whole(bed: &Bed, mut snapshot: Snapshot) -> Snapshot {
    bed.store.enter_snapshot(bed.epoch, &snapshot).await.unwrap();
    snapshot.state = SnapshotState::Whole;
    snapshot.bytes = 1000;
    bed.store.record_snapshot(bed.epoch, SnapshotState::Making, &snapshot).await.unwrap();
    snapshot
}

async fn listed(bed: &Bed, project: &ProjectId, filter: &SnapshotFilter) -> Vec<SnapshotId> {
    let page = bed.store.list_snapshots(project, filter, None, 100).await.unwrap();
    assert_eq!((page.next, page.unreadable), (None, Vec::new()));
    page.snapshots.into_iter().map(|snapshot| snapshot.id).collect()
}

pub(crate) async fn a_snapshot_is_seen_when_it_is_whole_and_only_then(bed: &Bed) {
    let source = bed.reserved().await;
    let mut snapshot = snapshot_of(&source, 5);
    bed.store.enter_snapshot(bed.epoch, &snapshot).await.unwrap();
    let everything = SnapshotFilter::default();
    assert_eq!(bed.store.snapshot(&bed.project, &snapshot.id).await.unwrap(), None);
    assert!(listed(bed, &bed.project, &everything).await.is_empty());
    assert_eq!(bed.store.all_snapshots().await.unwrap().0, [snapshot.clone()]);

    snapshot.state = SnapshotState::Whole;
    snapshot.bytes = 77;
    bed.store.record_snapshot(bed.epoch, SnapshotState::Making, &snapshot).await.unwrap();
    assert_eq!(bed.store.snapshot(&bed.project, &snapshot.id).await.unwrap(), Some(snapshot.clone()));
    assert_eq!(listed(bed, &bed.project, &everything).await, [snapshot.id.clone()]);
    let stranger = bed.add_project("stranger", UNBOUNDED).await;
    assert_eq!(bed.store.snapshot(&stranger, &snapshot.id).await.unwrap(), None);

    snapshot.state = SnapshotState::Removing;
    bed.store.record_snapshot(bed.epoch, SnapshotState::Whole, &snapshot).await.unwrap();
    assert_eq!(bed.store.snapshot(&bed.project, &snapshot.id).await.unwrap(), None);
    assert_eq!(bed.store.all_snapshots().await.unwrap().0.len(), 1);
    for _twice in 0..2 {
        bed.store.forget_snapshot(bed.epoch, &snapshot.id).await.unwrap();
    }
    assert!(bed.store.all_snapshots().await.unwrap().0.is_empty());
}

pub(crate) async fn a_writer_that_is_wrong_about_a_snapshot_changes_nothing(bed: &Bed) {
    let source = bed.reserved().await;
    let made = whole(bed, snapshot_of(&source, 5)).await;
    let removing = Snapshot { state: SnapshotState::Removing, ..made.clone() };
    let wrong = bed.store.record_snapshot(bed.epoch, SnapshotState::Making, &removing).await;
    assert!(matches!(wrong, Err(StoreError::SnapshotConflict { ref found, .. }) if found == "whole"), "{wrong:?}");
    let nowhere = Snapshot { id: SnapshotId::random(), ..made.clone() };
    let absent = bed.store.record_snapshot(bed.epoch, SnapshotState::Making, &nowhere).await;
    assert!(matches!(absent, Err(StoreError::SnapshotConflict { ref found, .. }) if found == "absent"), "{absent:?}");
    let twice = bed.store.enter_snapshot(bed.epoch, &Snapshot { state: SnapshotState::Making, ..made.clone() }).await;
    assert!(matches!(twice, Err(StoreError::Exists { what: "snapshot", .. })), "{twice:?}");

    let newer = bed.store.begin_epoch().await.unwrap();
    let verbs = [
        bed.store.record_snapshot(bed.epoch, SnapshotState::Whole, &removing).await,
        bed.store.enter_snapshot(bed.epoch, &snapshot_of(&source, 6)).await,
        bed.store.forget_snapshot(bed.epoch, &made.id).await,
    ];
    for verb in verbs {
        assert!(matches!(verb, Err(StoreError::Fenced { .. })), "{verb:?}");
    }
    assert_eq!(bed.store.snapshot(&bed.project, &made.id).await.unwrap(), Some(made.clone()));
    bed.store.record_snapshot(newer, SnapshotState::Whole, &removing).await.unwrap();
}

pub(crate) async fn a_name_means_the_newest_that_has_it(bed: &Bed) {
    let (first, second) = (bed.reserved().await, bed.reserved().await);
    let name = Some("before-upgrade".parse().unwrap());
    let old = whole(bed, Snapshot { name: name.clone(), ..snapshot_of(&first, 5) }).await;
    let new = whole(bed, Snapshot { name: name.clone(), ..snapshot_of(&second, 9) }).await;
    let other = whole(bed, snapshot_of(&first, 7)).await;
    let half = Snapshot { name: name.clone(), ..snapshot_of(&first, 11) };
    bed.store.enter_snapshot(bed.epoch, &half).await.unwrap();
    let named = name.clone().unwrap();
    assert_eq!(bed.store.snapshot_named(&bed.project, &named).await.unwrap(), Some(new.clone()));
    assert_eq!(listed(bed, &bed.project, &SnapshotFilter { name, source: None }).await, [new.id.clone(), old.id.clone()]);
    let of_first = SnapshotFilter { name: None, source: Some(first.id.clone()) };
    assert_eq!(listed(bed, &bed.project, &of_first).await, [other.id.clone(), old.id.clone()]);

    let mut seen = Vec::new();
    let mut after: Option<SnapshotCursor> = None;
    loop {
        let page = bed.store.list_snapshots(&bed.project, &SnapshotFilter::default(), after.as_ref(), 1).await.unwrap();
        seen.extend(page.snapshots.into_iter().map(|snapshot| snapshot.id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, [new.id, other.id, old.id]);
}

pub(crate) async fn snapshots_expire_in_their_order(bed: &Bed) {
    let source = bed.reserved().await;
    let late = whole(bed, Snapshot { expires_at: Some(Timestamp(200)), ..snapshot_of(&source, 5) }).await;
    let early = whole(bed, Snapshot { expires_at: Some(Timestamp(100)), ..snapshot_of(&source, 6) }).await;
    whole(bed, snapshot_of(&source, 7)).await;
    let half = Snapshot { expires_at: Some(Timestamp(1)), ..snapshot_of(&source, 8) };
    bed.store.enter_snapshot(bed.epoch, &half).await.unwrap();
    let due = |before| bed.store.expiring_snapshots(Timestamp(before), 10);
    assert!(due(100).await.unwrap().is_empty());
    assert_eq!(due(101).await.unwrap(), std::slice::from_ref(&early));
    assert_eq!(due(1000).await.unwrap(), [early.clone(), late]);
    assert_eq!(bed.store.expiring_snapshots(Timestamp(1000), 1).await.unwrap(), [early]);
}

pub(crate) async fn a_family_is_found_by_whom_it_began_with(bed: &Bed) {
    let root = bed.reserved().await;
    let taken = whole(bed, snapshot_of(&root, 5)).await;
    let origin = Origin { sandbox: root.id.clone(), snapshot: Some(taken.id.clone()), root: root.id.clone() };
    let child = Sandbox { origin: Some(origin), ..sandbox(&bed.project) };
    bed.reserve(&child).await;
    let grandchild_of = whole(bed, snapshot_of(&child, 6)).await;
    bed.reserved().await;
    for member in [&root, &child] {
        let family = bed.store.family(&bed.project, member.root(), 100).await.unwrap();
        let mut sandboxes: Vec<_> = family.sandboxes.into_iter().map(|sandbox| sandbox.id).collect();
        let mut expected = vec![root.id.clone(), child.id.clone()];
        sandboxes.sort();
        expected.sort();
        assert_eq!(sandboxes, expected);
        assert_eq!(family.snapshots, [taken.clone(), grandchild_of.clone()]);
    }
    let stranger = bed.add_project("stranger", UNBOUNDED).await;
    assert_eq!(bed.store.family(&stranger, &root.id, 100).await.unwrap(), belljar_ports::Family::default());
}

pub(crate) async fn snapshots_count_for_the_disk_and_keep_their_project(bed: &Bed) {
    let limit = sandbox(&bed.project).spec.limits.disk_bytes;
    let project = bed.add_project("small", Quota { disk_bytes: limit + 1500, ..UNBOUNDED }).await;
    let source = sandbox(&project);
    bed.reserve(&source).await;
    let first = whole(bed, snapshot_of(&source, 5)).await;
    whole(bed, snapshot_of(&source, 6)).await;
    let third = bed.store.enter_snapshot(bed.epoch, &snapshot_of(&source, 7)).await;
    let over = matches!(third, Err(StoreError::OverQuota { resource: "disk_bytes", wanted, .. }) if wanted == limit + 2000);
    assert!(over, "{third:?}");
    let fork = Snapshot { purpose: SnapshotPurpose::Fork, ..snapshot_of(&source, 8) };
    bed.store.enter_snapshot(bed.epoch, &fork).await.unwrap();
    bed.store.forget_snapshot(bed.epoch, &fork.id).await.unwrap();

    let mut source = source;
    bed.advance(&mut source, belljar_types::SandboxState::Failed).await;
    let kept = bed.store.remove_project(&project).await;
    assert!(matches!(kept, Err(StoreError::Exists { what: "a snapshot of project", .. })), "{kept:?}");
    for snapshot in bed.store.all_snapshots().await.unwrap().0 {
        bed.store.forget_snapshot(bed.epoch, &snapshot.id).await.unwrap();
    }
    assert_eq!(bed.store.snapshot(&project, &first.id).await.unwrap(), None);
    bed.store.remove_project(&project).await.unwrap();
}

pub(crate) async fn one_bad_snapshot_is_one_bad_snapshot(bed: &Bed) {
    let source = bed.reserved().await;
    let (bad, good) = (whole(bed, snapshot_of(&source, 5)).await, whole(bed, snapshot_of(&source, 6)).await);
    bed.execute(&format!("UPDATE snapshots SET body = '{{' WHERE id = '{}'", bad.id)).await;
    let (read, unreadable) = bed.store.all_snapshots().await.unwrap();
    assert_eq!(read, std::slice::from_ref(&good));
    assert_eq!(unreadable[0].id, bad.id.as_str());
    let alone = bed.store.snapshot(&bed.project, &bad.id).await;
    assert!(matches!(alone, Err(StoreError::Corrupt { what: "snapshot", .. })), "{alone:?}");
    let page = bed.store.list_snapshots(&bed.project, &SnapshotFilter::default(), None, 10).await.unwrap();
    assert_eq!((page.snapshots, page.unreadable.len()), (vec![good], 1));
}
