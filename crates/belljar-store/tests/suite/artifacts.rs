//! Artifacts: shown when they are kept and only then, listed by project and sandbox, counted for the disk, and gone when forgotten.

use belljar_ports::StoreError;
use belljar_types::{Artifact, ArtifactId, ArtifactState, ProjectId, Quota, SandboxId, Timestamp};

use crate::bed::{Bed, UNBOUNDED};

pub(crate) fn artifact(project: &ProjectId, sandbox: &SandboxId, at: u64) -> Artifact {
    Artifact {
        id: ArtifactId::random(),
        project: project.clone(),
        state: ArtifactState::Keeping,
        sandbox: sandbox.clone(),
        name: "report.pdf".to_owned(),
        path: "/home/user/report.pdf".to_owned(),
        bytes: 1000,
        sha256: "0".repeat(64),
        media_type: "application/pdf".to_owned(),
        created_at: Timestamp(at),
        expires_at: Some(Timestamp(at + 100)),
    }
}

async fn keep(bed: &Bed, artifact: Artifact) -> Artifact {
    bed.store.enter_artifact(bed.epoch, &artifact, 100).await.unwrap();
    let kept = Artifact { state: ArtifactState::Kept, ..artifact };
    bed.store.record_artifact(bed.epoch, ArtifactState::Keeping, &kept).await.unwrap();
    kept
}

pub(crate) async fn an_artifact_is_seen_when_it_is_kept_and_only_then(bed: &Bed) {
    let mut changing = artifact(&bed.project, &SandboxId::random(), 5);
    bed.store.enter_artifact(bed.epoch, &changing, 1).await.unwrap();
    let mut was = ArtifactState::Keeping;
    for (state, seen) in [(ArtifactState::Keeping, false), (ArtifactState::Kept, true), (ArtifactState::Removing, false)] {
        changing.state = state;
        bed.store.record_artifact(bed.epoch, was, &changing).await.unwrap();
        let wrong = if was == ArtifactState::Removing { ArtifactState::Kept } else { ArtifactState::Removing };
        assert!(state == wrong || bed.store.record_artifact(bed.epoch, wrong, &changing).await.is_err());
        assert_eq!(bed.store.artifact(&bed.project, &changing.id).await.unwrap().is_some(), seen);
        assert_eq!(bed.store.list_artifacts(&bed.project, None, None, 9).await.unwrap().artifacts.len(), usize::from(seen));
        assert_eq!(bed.store.expiring_artifacts(Timestamp(1000), 9).await.unwrap().len(), usize::from(seen));
        assert_eq!(bed.store.unfinished_artifacts().await.unwrap().len(), usize::from(!seen));
        was = state;
    }
    for _twice in 0..2 {
        bed.store.forget_artifact(bed.epoch, &changing.id).await.unwrap();
    }
    assert!(bed.store.unfinished_artifacts().await.unwrap().is_empty());
}

pub(crate) async fn artifacts_are_listed_and_expire_in_their_order(bed: &Bed) {
    let (one, other) = (SandboxId::random(), SandboxId::random());
    let first = keep(bed, artifact(&bed.project, &one, 5)).await;
    let second = keep(bed, artifact(&bed.project, &other, 6)).await;
    let third = keep(bed, artifact(&bed.project, &one, 7)).await;
    let page = bed.store.list_artifacts(&bed.project, None, None, 2).await.unwrap();
    assert_eq!(page.artifacts, [third.clone(), second.clone()]);
    let rest = bed.store.list_artifacts(&bed.project, None, page.next.as_ref(), 2).await.unwrap();
    assert_eq!((rest.artifacts, rest.next), (vec![first.clone()], None));
    let of_one = bed.store.list_artifacts(&bed.project, Some(&one), None, 10).await.unwrap();
    assert_eq!(of_one.artifacts, [third.clone(), first.clone()]);
    let stranger = bed.add_project("stranger", UNBOUNDED).await;
    assert_eq!(bed.store.artifact(&stranger, &first.id).await.unwrap(), None);
    assert_eq!(bed.store.expiring_artifacts(Timestamp(107), 10).await.unwrap(), [first.clone(), second.clone()]);
    let another = artifact(&bed.project, &one, 8);
    let many = bed.store.enter_artifact(bed.epoch, &another, 2).await;
    assert!(matches!(many, Err(StoreError::OverQuota { allowed: 2, wanted: 3, .. })), "{many:?}");
    bed.store.begin_epoch().await.unwrap();
    assert!(matches!(bed.store.enter_artifact(bed.epoch, &another, 9).await, Err(StoreError::Fenced { .. })));
}

pub(crate) async fn artifacts_count_for_the_disk_and_keep_their_project(bed: &Bed) {
    let project = bed.add_project("small", Quota { disk_bytes: 1999, ..UNBOUNDED }).await;
    let sandbox = SandboxId::random();
    let entered = artifact(&project, &sandbox, 5);
    bed.store.enter_artifact(bed.epoch, &entered, 9).await.unwrap();
    let over = bed.store.enter_artifact(bed.epoch, &artifact(&project, &sandbox, 6), 9).await;
    assert!(matches!(over, Err(StoreError::OverQuota { resource: "disk_bytes", allowed: 1999, wanted: 2000, .. })), "{over:?}");
    let grown = Artifact { state: ArtifactState::Kept, bytes: 2000, ..entered.clone() };
    let over = bed.store.record_artifact(bed.epoch, ArtifactState::Keeping, &grown).await;
    assert!(matches!(over, Err(StoreError::OverQuota { resource: "disk_bytes", allowed: 1999, wanted: 2000, .. })), "{over:?}");
    let refused = bed.store.remove_project(&project).await;
    assert!(matches!(refused, Err(StoreError::Exists { what: "an artifact of project", .. })), "{refused:?}");
    bed.store.forget_artifact(bed.epoch, &entered.id).await.unwrap();
    bed.store.remove_project(&project).await.unwrap();
}
