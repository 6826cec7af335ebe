//! Volumes: seen only when they are ready, called by one name each, and never in two hands that do not go together.

use belljar_ports::{Holder, Reserved, StoreError};
use belljar_types::{MountMode, Quota, Sandbox, SandboxState, Timestamp, Volume, VolumeId, VolumeMount, VolumeState};
use tokio::task::JoinSet;

use crate::bed::{Bed, UNBOUNDED, sandbox};

pub(crate) fn volume_of(bed: &Bed, name: &str) -> Volume {
    Volume {
        id: VolumeId::random(),
        project: bed.project.clone(),
        name: name.parse().unwrap(),
        state: VolumeState::Making,
        size_bytes: 1 << 20,
        read_only: false,
        origin: None,
        bucket: None,
        created_at: Timestamp(5),
    }
}

async fn ready(bed: &Bed, mut volume: Volume) -> Volume {
    bed.store.enter_volume(bed.epoch, &volume).await.unwrap();
    volume.state = VolumeState::Ready;
    bed.store.record_volume(bed.epoch, VolumeState::Making, &volume).await.unwrap();
    volume
}

fn with(bed: &Bed, volume: &Volume, mode: MountMode) -> Sandbox {
    let mut sandbox = sandbox(&bed.project);
    let (volume, name) = (volume.id.clone(), volume.name.clone());
    sandbox.spec.volumes.push(VolumeMount { volume, name, path: "/data".parse().unwrap(), mode });
    sandbox
}

async fn refused(bed: &Bed, sandbox: &Sandbox, holder: &Sandbox) {
    let refused = bed.store.reserve(bed.epoch, sandbox, None).await;
    assert!(matches!(&refused, Err(StoreError::VolumeInUse { holder: by, .. }) if *by == holder.id), "{refused:?}");
    assert_eq!(bed.get(sandbox).await, None, "a sandbox that does not get its volume is not there");
}

pub(crate) async fn a_volume_is_seen_when_it_is_ready_and_only_then(bed: &Bed) {
    let mut volume = volume_of(bed, "data");
    bed.store.enter_volume(bed.epoch, &volume).await.unwrap();
    assert_eq!(bed.store.volume(&bed.project, &volume.id).await.unwrap(), None);
    assert_eq!(bed.store.volume_named(&bed.project, &volume.name).await.unwrap(), None);
    assert_eq!(bed.store.all_volumes().await.unwrap().0, [volume.clone()]);
    let early = bed.store.reserve(bed.epoch, &with(bed, &volume, MountMode::ReadWrite), None).await;
    assert!(matches!(early, Err(StoreError::Absent { what: "volume", .. })), "{early:?}");

    volume.state = VolumeState::Ready;
    bed.store.record_volume(bed.epoch, VolumeState::Making, &volume).await.unwrap();
    assert_eq!(bed.store.volume(&bed.project, &volume.id).await.unwrap(), Some(volume.clone()));
    assert_eq!(bed.store.volume_named(&bed.project, &volume.name).await.unwrap(), Some(volume.clone()));
    let stranger = bed.add_project("stranger", UNBOUNDED).await;
    assert_eq!(bed.store.volume(&stranger, &volume.id).await.unwrap(), None);
    let theirs = Sandbox { project: stranger, ..with(bed, &volume, MountMode::ReadOnly) };
    let stolen = bed.store.reserve(bed.epoch, &theirs, None).await;
    assert!(matches!(stolen, Err(StoreError::Absent { what: "volume", .. })), "{stolen:?}");

    volume.state = VolumeState::Removing;
    bed.store.record_volume(bed.epoch, VolumeState::Ready, &volume).await.unwrap();
    assert_eq!(bed.store.volume(&bed.project, &volume.id).await.unwrap(), None);
    for _twice in 0..2 {
        bed.store.forget_volume(bed.epoch, &volume.id).await.unwrap();
    }
    assert!(bed.store.all_volumes().await.unwrap().0.is_empty());
}

pub(crate) async fn names_are_taken_once_in_a_project_and_listed_in_order(bed: &Bed) {
    for name in ["b", "a", "B", "_", "c"] {
        ready(bed, volume_of(bed, name)).await;
    }
    let again = bed.store.enter_volume(bed.epoch, &volume_of(bed, "a")).await;
    assert!(matches!(again, Err(StoreError::Exists { what: "volume", ref name }) if name == "a"), "{again:?}");
    let stranger = bed.add_project("stranger", UNBOUNDED).await;
    ready(bed, Volume { project: stranger, ..volume_of(bed, "a") }).await;

    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = bed.store.list_volumes(&bed.project, after.as_ref(), 2).await.unwrap();
        seen.extend(page.volumes.into_iter().map(|volume| volume.name.to_string()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["B", "_", "a", "b", "c"]);
}

pub(crate) async fn a_writer_has_a_volume_alone(bed: &Bed) {
    let volume = ready(bed, volume_of(bed, "data")).await;
    let mut writer = with(bed, &volume, MountMode::ReadWrite);
    bed.reserve(&writer).await;
    assert_eq!(bed.store.holders(&volume.id, 10).await.unwrap(), [Holder { sandbox: writer.id.clone(), mode: MountMode::ReadWrite }]);
    for mode in MountMode::ALL {
        refused(bed, &with(bed, &volume, mode), &writer).await;
    }
    for state in [SandboxState::Running, SandboxState::Pausing, SandboxState::Paused] {
        bed.advance(&mut writer, state).await;
        refused(bed, &with(bed, &volume, MountMode::Shared), &writer).await;
    }
    bed.advance(&mut writer, SandboxState::Stopping).await;
    refused(bed, &with(bed, &volume, MountMode::ReadOnly), &writer).await;
    bed.advance(&mut writer, SandboxState::Stopped).await;
    bed.reserve(&with(bed, &volume, MountMode::ReadWrite)).await;
}

pub(crate) async fn fifty_writers_at_once_get_one_volume(bed: &Bed) {
    let volume = ready(bed, volume_of(bed, "data")).await;
    let mut tries = JoinSet::new();
    for _ in 0..50 {
        let (store, epoch, sandbox) = (bed.store.clone(), bed.epoch, with(bed, &volume, MountMode::ReadWrite));
        tries.spawn(async move { store.reserve(epoch, &sandbox, None).await });
    }
    let outcomes = tries.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| matches!(outcome, Ok(Reserved::New))).count(), 1);
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(_) | Err(StoreError::VolumeInUse { .. }))), "{outcomes:?}");
    assert_eq!(bed.count().await, 1);
}

pub(crate) async fn readers_and_sharers_go_together_and_a_kept_state_is_read_only(bed: &Bed) {
    let volume = ready(bed, volume_of(bed, "data")).await;
    let reader = with(bed, &volume, MountMode::ReadOnly);
    bed.reserve(&reader).await;
    bed.reserve(&with(bed, &volume, MountMode::ReadOnly)).await;
    bed.reserve(&with(bed, &volume, MountMode::Shared)).await;
    let writer = bed.store.reserve(bed.epoch, &with(bed, &volume, MountMode::ReadWrite), None).await;
    assert!(matches!(writer, Err(StoreError::VolumeInUse { .. })), "{writer:?}");

    let kept = ready(bed, Volume { read_only: true, ..volume_of(bed, "kept") }).await;
    bed.reserve(&with(bed, &kept, MountMode::ReadOnly)).await;
    for mode in [MountMode::ReadWrite, MountMode::Shared] {
        let written = bed.store.reserve(bed.epoch, &with(bed, &kept, mode), None).await;
        assert!(matches!(written, Err(StoreError::VolumeReadOnly { .. })), "{written:?}");
    }
}

pub(crate) async fn a_mounted_volume_stays_until_its_sandbox_has_ended(bed: &Bed) {
    let volume = ready(bed, volume_of(bed, "data")).await;
    let mut writer = with(bed, &volume, MountMode::ReadWrite);
    bed.reserve(&writer).await;
    let removing = Volume { state: VolumeState::Removing, ..volume.clone() };
    let removed = bed.store.record_volume(bed.epoch, VolumeState::Ready, &removing).await;
    assert!(matches!(&removed, Err(StoreError::VolumeInUse { holder, .. }) if *holder == writer.id), "{removed:?}");
    bed.advance(&mut writer, SandboxState::Failed).await;
    bed.store.record_volume(bed.epoch, VolumeState::Ready, &removing).await.unwrap();
    let late = bed.store.reserve(bed.epoch, &with(bed, &volume, MountMode::ReadWrite), None).await;
    assert!(matches!(late, Err(StoreError::Absent { what: "volume", .. })), "{late:?}");
    bed.store.forget_volume(bed.epoch, &volume.id).await.unwrap();
}

pub(crate) async fn a_writer_that_is_wrong_about_a_volume_changes_nothing(bed: &Bed) {
    let volume = ready(bed, volume_of(bed, "data")).await;
    let removing = Volume { state: VolumeState::Removing, ..volume.clone() };
    let wrong = bed.store.record_volume(bed.epoch, VolumeState::Making, &removing).await;
    assert!(matches!(wrong, Err(StoreError::VolumeConflict { ref found, .. }) if found == "ready"), "{wrong:?}");
    let nowhere = Volume { id: VolumeId::random(), ..removing.clone() };
    let absent = bed.store.record_volume(bed.epoch, VolumeState::Ready, &nowhere).await;
    assert!(matches!(absent, Err(StoreError::VolumeConflict { ref found, .. }) if found == "absent"), "{absent:?}");
    bed.store.begin_epoch().await.unwrap();
    let verbs = [
        bed.store.record_volume(bed.epoch, VolumeState::Ready, &removing).await,
        bed.store.enter_volume(bed.epoch, &volume_of(bed, "more")).await,
        bed.store.forget_volume(bed.epoch, &volume.id).await,
    ];
    for verb in verbs {
        assert!(matches!(verb, Err(StoreError::Fenced { .. })), "{verb:?}");
    }
    assert_eq!(bed.store.volume(&bed.project, &volume.id).await.unwrap(), Some(volume));
}

pub(crate) async fn volumes_count_for_the_disk_and_keep_their_project(bed: &Bed) {
    let project = bed.add_project("small", Quota { disk_bytes: 5 << 20, ..UNBOUNDED }).await;
    let of = |name: &str, size_bytes| Volume { project: project.clone(), size_bytes, ..volume_of(bed, name) };
    let first = ready(bed, of("first", 3 << 20)).await;
    let second = bed.store.enter_volume(bed.epoch, &of("second", 3 << 20)).await;
    let over = matches!(second, Err(StoreError::OverQuota { resource: "disk_bytes", wanted, .. }) if wanted == 6 << 20);
    assert!(over, "{second:?}");
    ready(bed, of("second", 2 << 20)).await;
    let kept = bed.store.remove_project(&project).await;
    assert!(matches!(kept, Err(StoreError::Exists { what: "a volume of project", .. })), "{kept:?}");
    for volume in bed.store.all_volumes().await.unwrap().0 {
        bed.store.forget_volume(bed.epoch, &volume.id).await.unwrap();
    }
    assert_eq!(bed.store.volume(&project, &first.id).await.unwrap(), None);
    bed.store.remove_project(&project).await.unwrap();
}

pub(crate) async fn one_bad_volume_is_one_bad_volume(bed: &Bed) {
    let (bad, good) = (ready(bed, volume_of(bed, "bad")).await, ready(bed, volume_of(bed, "good")).await);
    bed.execute(&format!("UPDATE volumes SET body = '{{' WHERE id = '{}'", bad.id)).await;
    let (read, unreadable) = bed.store.all_volumes().await.unwrap();
    assert_eq!(read, std::slice::from_ref(&good));
    assert_eq!(unreadable[0].id, bad.id.as_str());
    let alone = bed.store.volume(&bed.project, &bad.id).await;
    assert!(matches!(alone, Err(StoreError::Corrupt { what: "volume", .. })), "{alone:?}");
    let mounted = bed.store.reserve(bed.epoch, &with(bed, &bad, MountMode::ReadOnly), None).await;
    assert!(matches!(mounted, Err(StoreError::Corrupt { what: "volume", .. })), "{mounted:?}");
    let page = bed.store.list_volumes(&bed.project, None, 10).await.unwrap();
    assert_eq!((page.volumes, page.unreadable.len()), (vec![good], 1));
}
