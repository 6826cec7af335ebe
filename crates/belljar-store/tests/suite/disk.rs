//! One quota for all that lies on disk: sandboxes, snapshots, volumes and artifacts, in whatever order and however many at once.

use std::sync::Arc;

use belljar_ports::StoreError;
use belljar_types::{
    Artifact, ArtifactState, ProjectId, Quota, SandboxId, Snapshot, SnapshotPurpose, SnapshotState, Volume, VolumeId, VolumeState,
};

use crate::artifacts::artifact;
use crate::bed::{Bed, UNBOUNDED, sandbox};
use crate::snapshots::snapshot_of;
use crate::volumes::volume_of;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Sandbox,
    Snapshot,
    Volume,
    Artifact,
}

const KINDS: [Kind; 4] = [Kind::Sandbox, Kind::Snapshot, Kind::Volume, Kind::Artifact];

fn size(bed: &Bed) -> u64 {
    sandbox(&bed.project).spec.limits.disk_bytes
}

/// Makes a thing of as many bytes as a sandbox has of disk.
async fn make(bed: &Bed, project: &ProjectId, kind: Kind) -> Result<(), StoreError> {
    let bytes = size(bed);
    match kind {
        Kind::Sandbox => bed.store.reserve(bed.epoch, &sandbox(project), None).await.map(drop),
        Kind::Snapshot => {
            let making = Snapshot { bytes, ..snapshot_of(&sandbox(project), 5) };
            bed.store.enter_snapshot(bed.epoch, &making).await?;
            let whole = Snapshot { state: SnapshotState::Whole, ..making };
            bed.store.record_snapshot(bed.epoch, SnapshotState::Making, &whole).await
        }
        Kind::Volume => {
            let name = format!("v{}", VolumeId::random());
            let making = Volume { project: project.clone(), size_bytes: bytes, ..volume_of(bed, &name[..20]) };
            bed.store.enter_volume(bed.epoch, &making).await?;
            let ready = Volume { state: VolumeState::Ready, ..making };
            bed.store.record_volume(bed.epoch, VolumeState::Making, &ready).await
        }
        Kind::Artifact => {
            let keeping = Artifact { bytes, ..artifact(project, &SandboxId::random(), 5) };
            bed.store.enter_artifact(bed.epoch, &keeping, 9).await?;
            let kept = Artifact { state: ArtifactState::Kept, ..keeping };
            bed.store.record_artifact(bed.epoch, ArtifactState::Keeping, &kept).await
        }
    }
}

pub(crate) async fn no_order_of_things_passes_the_quota(bed: &Bed) {
    let (one, mut number) = (size(bed), 0);
    for first in KINDS {
        for second in KINDS {
            number += 1;
            let quota = Quota { disk_bytes: 2 * one - 1, ..UNBOUNDED };
            let project = bed.add_project(&format!("pair-{number}"), quota).await;
            make(bed, &project, first).await.unwrap();
            match make(bed, &project, second).await {
                Err(StoreError::OverQuota { resource: "disk_bytes", allowed, wanted, .. }) => {
                    assert_eq!((allowed, wanted), (2 * one - 1, 2 * one), "{first:?}, then {second:?}");
                }
                other => panic!("{first:?}, then {second:?}: {other:?}"),
            }
            bed.store.set_quota(&project, &Quota { disk_bytes: 2 * one, ..UNBOUNDED }).await.unwrap();
            make(bed, &project, second).await.unwrap_or_else(|error| panic!("there is room: {first:?}, then {second:?}: {error:?}"));
        }
    }
}

pub(crate) async fn fifty_of_all_kinds_at_once_get_exactly_what_there_is_room_for(bed: &Bed) {
    let project = bed.add_project("ten", Quota { disk_bytes: 10 * size(bed), ..UNBOUNDED }).await;
    let everybodys = Arc::new(bed.shared());
    let attempts: Vec<_> = (0..50)
        .map(|number| {
            let (bed, project) = (Arc::clone(&everybodys), project.clone());
            tokio::spawn(async move { make(&bed, &project, KINDS[number % KINDS.len()]).await })
        })
        .collect();
    let mut made = 0;
    for attempt in attempts {
        match attempt.await.unwrap() {
            Ok(()) => made += 1,
            Err(error) => assert!(matches!(error, StoreError::OverQuota { resource: "disk_bytes", .. }), "{error:?}"),
        }
    }
    assert_eq!(made, 10);
}

pub(crate) async fn what_the_server_takes_for_itself_is_not_counted(bed: &Bed) {
    let project = bed.add_project("two", Quota { disk_bytes: 2 * size(bed), ..UNBOUNDED }).await;
    let source = sandbox(&project);
    bed.reserve(&source).await;
    for purpose in [SnapshotPurpose::Fork, SnapshotPurpose::ForkTogether, SnapshotPurpose::Warm] {
        let making = Snapshot { purpose, ..snapshot_of(&source, 5) };
        bed.store.enter_snapshot(bed.epoch, &making).await.unwrap();
        let whole = Snapshot { state: SnapshotState::Whole, bytes: 1000, ..making };
        bed.store.record_snapshot(bed.epoch, SnapshotState::Making, &whole).await.unwrap();
    }
    bed.reserve(&sandbox(&project)).await;
    assert!(matches!(make(bed, &project, Kind::Sandbox).await, Err(StoreError::OverQuota { resource: "disk_bytes", .. })));
}
