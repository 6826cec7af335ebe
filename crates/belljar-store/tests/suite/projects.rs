//! Projects and keys come, are found, and go with all that is theirs, out of each other's sight.

use belljar_ports::{Order, PageRequest, SandboxFilter, StoreError};
use belljar_types::{ApiKey, KeyHash, KeyId, Project, ProjectId, Quota, SandboxState, Scope, Timestamp};

use crate::bed::{Bed, UNBOUNDED, sandbox};

fn key(project: &ProjectId) -> ApiKey {
    ApiKey {
        id: KeyId::random(),
        project: project.clone(),
        scopes: [Scope::Read, Scope::Use].into(),
        label: "for tests".to_owned(),
        created_at: Timestamp(5),
        expires_at: Some(Timestamp(u64::MAX)),
    }
}

pub(crate) async fn projects_come_and_go(bed: &Bed) {
    let zebra = bed.add_project("zebra", Quota::default()).await;
    bed.add_project("a-b", UNBOUNDED).await;
    bed.add_project("a0", UNBOUNDED).await;
    let names: Vec<String> = bed.store.projects().await.unwrap().into_iter().map(|project| project.id.to_string()).collect();
    assert_eq!(names, ["a-b", "a0", "first", "zebra"]);
    assert_eq!(bed.store.projects().await.unwrap()[0].quota, UNBOUNDED);

    let stored = Project { id: zebra.clone(), quota: Quota::default(), created_at: Timestamp(1) };
    assert_eq!(bed.store.project(&zebra).await.unwrap().as_ref(), Some(&stored));
    assert!(matches!(bed.store.add_project(&stored).await, Err(StoreError::Exists { what: "project", .. })));

    let quota = Quota { sandboxes: 1, cpu_millis: 2, memory_bytes: 3, disk_bytes: 4 };
    bed.store.set_quota(&zebra, &quota).await.unwrap();
    assert_eq!(bed.store.project(&zebra).await.unwrap().unwrap().quota, quota);

    bed.store.remove_project(&zebra).await.unwrap();
    assert_eq!(bed.store.project(&zebra).await.unwrap(), None);
    assert!(matches!(bed.store.remove_project(&zebra).await, Err(StoreError::Absent { what: "project", .. })));
    assert!(matches!(bed.store.set_quota(&zebra, &quota).await, Err(StoreError::Absent { what: "project", .. })));
}

pub(crate) async fn a_project_with_live_sandboxes_stays(bed: &Bed) {
    let mut made = sandbox(&bed.project);
    made.metadata = [("a".to_owned(), "b".to_owned())].into();
    bed.reserve(&made).await;
    let (acting, hash) = (key(&bed.project), KeyHash([1; 32]));
    bed.store.add_key(&acting, &hash).await.unwrap();
    assert!(matches!(bed.store.remove_project(&bed.project).await, Err(StoreError::Exists { .. })));
    assert_eq!(bed.store.key_by_hash(&hash).await.unwrap(), Some(acting));

    bed.advance(&mut made, SandboxState::Failed).await;
    bed.store.remove_project(&bed.project).await.unwrap();
    assert_eq!(bed.store.key_by_hash(&hash).await.unwrap(), None);
    assert_eq!(bed.get(&made).await, None);
    // Nothing of it comes back with a project of the same name.
    bed.add_project(bed.project.as_str(), UNBOUNDED).await;
    assert_eq!(bed.count().await, 0);
}

pub(crate) async fn projects_do_not_see_each_other(bed: &Bed) {
    let other = bed.add_project("other", UNBOUNDED).await;
    let mut made = sandbox(&bed.project);
    made.metadata = [("shared".to_owned(), "word".to_owned())].into();
    bed.reserve(&made).await;
    assert_eq!(bed.store.sandbox(&other, &made.id).await.unwrap(), None);
    let page = PageRequest { order: Order::OldestFirst, after: None, limit: 10 };
    for metadata in [Default::default(), made.metadata.clone()] {
        let filter = SandboxFilter { metadata, ..SandboxFilter::default() };
        assert_eq!(bed.store.list(&other, &filter, &page).await.unwrap().sandboxes, []);
        assert_eq!(bed.store.list(&bed.project, &filter, &page).await.unwrap().sandboxes, std::slice::from_ref(&made));
    }
    // Nor can one write under another's name.
    let mut moved = made.clone();
    moved.project = other;
    let answer = bed.store.record(bed.epoch, SandboxState::Creating, made.execution(), &moved).await;
    assert!(matches!(answer, Err(StoreError::Conflict { found, .. }) if found == "absent"));
}

pub(crate) async fn keys_are_found_by_their_hash(bed: &Bed) {
    let other = bed.add_project("other", UNBOUNDED).await;
    let (first, second) = (key(&bed.project), key(&other));
    bed.store.add_key(&first, &KeyHash([1; 32])).await.unwrap();
    bed.store.add_key(&second, &KeyHash([2; 32])).await.unwrap();
    assert_eq!(bed.store.key_by_hash(&KeyHash([1; 32])).await.unwrap().as_ref(), Some(&first));
    assert_eq!(bed.store.key_by_hash(&KeyHash([3; 32])).await.unwrap(), None);
    assert_eq!(bed.store.keys(Some(&other)).await.unwrap(), std::slice::from_ref(&second));
    assert_eq!(bed.store.keys(None).await.unwrap(), [first.clone(), second.clone()]);

    assert!(matches!(bed.store.add_key(&first, &KeyHash([4; 32])).await, Err(StoreError::Exists { what: "key", .. })));
    assert!(matches!(bed.store.add_key(&key(&other), &KeyHash([2; 32])).await, Err(StoreError::Exists { what: "key", .. })));
    let nowhere = key(&"nowhere".parse().unwrap());
    assert!(matches!(bed.store.add_key(&nowhere, &KeyHash([5; 32])).await, Err(StoreError::Absent { what: "project", .. })));

    assert!(bed.store.remove_key(&first.id).await.unwrap());
    assert!(!bed.store.remove_key(&first.id).await.unwrap());
    assert_eq!(bed.store.key_by_hash(&KeyHash([1; 32])).await.unwrap(), None);
    assert_eq!(bed.store.keys(None).await.unwrap(), [second]);
}
