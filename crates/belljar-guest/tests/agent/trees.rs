//! Directories, attributes, watching and searching.

use belljar_ports::{Guest, GuestError};
use belljar_types::{FileEventKind, FileKind, GuestPath, ListOptions, SearchQuery, WriteOptions};
use bytes::Bytes;
use futures_util::StreamExt;

use crate::harness::{TestAgent, user};

#[tokio::test]
async fn directories_are_made_listed_moved_and_removed() {
    let agent = TestAgent::start().await;
    assert!(agent.client.make_directory(&agent.path("a/b/c"), None).await.unwrap());
    assert!(!agent.client.make_directory(&agent.path("a/b/c"), None).await.unwrap());
    std::os::unix::fs::symlink("/", agent.host_path("a/link")).unwrap();
    for n in 0..1200 {
        std::fs::write(agent.host_path(&format!("a/b/{n:04}")), "x").unwrap();
    }
    let deep = ListOptions { depth: 9, ..ListOptions::default() };
    let all = agent.client.list(&agent.path("a"), &deep).await.unwrap();
    assert_eq!(all.len(), 1203, "b, c, the link and the files; the link is not followed");
    let link = all.iter().find(|info| info.kind == FileKind::Symlink).unwrap();
    assert_eq!(link.symlink_target.as_deref(), Some(&b"/"[..]));
    assert_eq!(agent.client.list(&agent.path("a"), &ListOptions::default()).await.unwrap().len(), 2);
    let few = ListOptions { depth: 9, max_entries: 700, ..ListOptions::default() };
    assert_eq!(agent.client.list(&agent.path("a"), &few).await.unwrap().len(), 700);
    let moved = agent.client.rename(&agent.path("a/b/0001"), &agent.path("a/moved"), None).await.unwrap();
    assert_eq!((moved.size, moved.path), (1, agent.path("a/moved")));
    agent.client.remove(&agent.path("a"), None).await.unwrap();
    assert!(!agent.host_path("a").exists() && std::path::Path::new("/etc").exists());
    let gone = agent.client.remove(&agent.path("a"), None).await.unwrap_err();
    assert!(matches!(gone, GuestError::Refused { errno: 2, .. }), "{gone:?}");
}

#[tokio::test]
async fn modes_owners_and_attributes_change() {
    let agent = TestAgent::start().await;
    std::fs::write(agent.host_path("f"), "x").unwrap();
    let path = agent.path("f");
    agent.client.set_mode(&path, 0o4711, None).await.unwrap();
    agent.client.set_owner(&path, Some(65534), None, None).await.unwrap();
    let info = agent.client.stat(&path, None).await.unwrap();
    assert_eq!((info.uid, info.owner.as_deref(), info.gid), (65534, Some("nobody"), 0));
    assert!(matches!(agent.client.set_mode(&path, 0o10000, None).await, Err(GuestError::Invalid(invalid)) if invalid.field == "mode"));
    assert_eq!(agent.client.get_xattr(&path, "trusted.belljar", None).await.unwrap(), None);
    agent.client.set_xattr(&path, "trusted.belljar", Some(b"\0v"), None).await.unwrap();
    assert_eq!(agent.client.get_xattr(&path, "trusted.belljar", None).await.unwrap().unwrap(), Bytes::from_static(b"\0v"));
    agent.client.set_xattr(&path, "trusted.belljar", None, None).await.unwrap();
    assert_eq!(agent.client.get_xattr(&path, "trusted.belljar", None).await.unwrap(), None);
}

#[tokio::test]
async fn parents_belong_to_the_acting_user() {
    let agent = TestAgent::start().await;
    std::fs::set_permissions(agent.directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let options =
        WriteOptions { user: Some(user("nobody")), make_parents: true, mode: Some(0o666), create_new: true, ..WriteOptions::default() };
    let content = || futures_util::stream::once(async { Ok(Bytes::from_static(b"x")) }).boxed();
    let info = agent.client.write_file(&agent.path("p/q/f"), &options, content()).await.unwrap();
    assert_eq!((info.uid, info.mode), (65534, 0o666));
    assert_eq!(agent.client.stat(&agent.path("p/q"), None).await.unwrap().uid, 65534);
    let twice = agent.client.write_file(&agent.path("p/q/f"), &options, content()).await.unwrap_err();
    assert!(matches!(twice, GuestError::Refused { errno: 17, .. }), "{twice:?}");
}

#[tokio::test]
async fn a_full_disk_stops_a_write_and_the_connection_goes_on() {
    let agent = TestAgent::start().await;
    let full = GuestPath::new("/dev/full").unwrap();
    let content = futures_util::stream::iter((0..64).map(|_| Ok(Bytes::from(vec![0; 100_000])))).boxed();
    let error = agent.client.write_file(&full, &WriteOptions::default(), content).await.unwrap_err();
    assert!(matches!(error, GuestError::Refused { errno: 28, .. }), "{error:?}");
    assert!(agent.client.hello().await.is_ok());
}

#[tokio::test]
async fn what_happens_below_a_directory_is_told_also_in_new_ones() {
    let agent = TestAgent::start().await;
    std::fs::create_dir(agent.host_path("w")).unwrap();
    let mut events = agent.client.watch(&agent.path("w"), true, None).await.unwrap();
    let script =
        format!("cd {}; mkdir -p new/deep; echo 1 > new/deep/f; mv new/deep/f g; chmod 600 g; rm g", agent.host_path("w").display());
    assert_eq!(agent.shell(&script).await.code(), Some(0));
    let mut seen = Vec::new();
    while !seen.contains(&(FileEventKind::Removed, b"g".to_vec())) {
        let event = events.next().await.unwrap().unwrap();
        seen.push((event.kind, event.name));
    }
    for wanted in [
        (FileEventKind::Created, "new"),
        (FileEventKind::Created, "new/deep"),
        (FileEventKind::Created, "g"),
        (FileEventKind::Attributes, "g"),
    ] {
        assert!(seen.contains(&(wanted.0, wanted.1.as_bytes().to_vec())), "{wanted:?} in {seen:?}");
    }
    std::fs::write(agent.host_path("w/new/deep/later"), "x").unwrap();
    while !matches!(events.next().await.unwrap().unwrap(), event if event.name == b"new/deep/later" && event.kind == FileEventKind::Written)
    {
    }
}

#[tokio::test]
async fn files_are_found_by_name_and_content() {
    let agent = TestAgent::start().await;
    std::fs::create_dir_all(agent.host_path("s/t")).unwrap();
    std::fs::write(agent.host_path("s/a.rs"), "one\nneedle two\n").unwrap();
    std::fs::write(agent.host_path("s/t/b.rs"), b"\xff\0needle\0").unwrap();
    std::fs::write(agent.host_path("s/t/c.txt"), "needle").unwrap();
    let query = |name: Option<&str>, content: Option<&[u8]>, max_hits| SearchQuery {
        user: None,
        root: agent.path("s"),
        name: name.map(Into::into),
        content: content.map(Into::into),
        max_hits,
    };
    let names = async |query: SearchQuery| {
        let mut hits = agent.client.search(&query).await.unwrap();
        let mut found = Vec::new();
        while let Some(hit) = hits.next().await {
            let hit = hit.unwrap();
            found.push((hit.path.to_string().rsplit('/').next().unwrap().to_owned(), hit.line));
        }
        found.sort();
        found
    };
    assert_eq!(names(query(Some("*.rs"), Some(b"needle"), 10)).await, [("a.rs".into(), Some(2)), ("b.rs".into(), Some(1))]);
    assert_eq!(names(query(Some("*.txt"), None, 10)).await, [("c.txt".into(), None)]);
    assert_eq!(names(query(None, Some(b"needle"), 2)).await.len(), 2);
    assert_eq!(names(query(None, None, 10)).await.len(), 4);
}
