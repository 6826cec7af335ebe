//! Files: every size, every name, every right.

use std::collections::BTreeSet;
use std::time::Duration;

use belljar_ports::{ByteStream, Guest, GuestError};
use belljar_testkit::{Lab, path, pattern, run, scaled, sh};
use belljar_types::{ByteRange, FileEventKind, FileKind, GuestPath, IsolationClass, ListOptions, SearchQuery, UserName, WriteOptions};
use bytes::Bytes;
use futures_util::{StreamExt, stream};

fn bytes(content: impl Into<Bytes>) -> ByteStream {
    Box::pin(stream::iter([Ok(content.into())]))
}

async fn read(guest: &dyn Guest, at: &GuestPath, range: ByteRange) -> Result<Vec<u8>, GuestError> {
    let mut content = guest.read_file(at, range, None).await?;
    let mut all = Vec::new();
    while let Some(piece) = content.bytes.next().await {
        all.extend_from_slice(&piece?);
    }
    Ok(all)
}

fn root() -> Option<UserName> {
    Some("root".parse().unwrap())
}

/// Memory of this process now, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    status.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

pub(crate) async fn a_big_file_goes_up_and_down_in_constant_memory(class: IsolationClass) {
    let lab = Lab::get().await;
    let mut spec = lab.spec();
    // Less memory than the file is long: an agent that buffered it would be killed.
    spec.limits.memory_bytes = 256 << 20;
    let sandbox = lab.create(class, &spec).await.unwrap();
    let pieces = scaled(128, 1024);
    let piece = Bytes::from(pattern(1 << 20));
    let before = resident();
    let upload: ByteStream = Box::pin(stream::iter((0..pieces).map({
        let piece = piece.clone();
        move |_| Ok(piece.clone())
    })));
    let at = path("/home/user/big");
    let info = sandbox.guest.write_file(&at, &WriteOptions::default(), upload).await.unwrap();
    assert_eq!(info.size, pieces << 20);
    let mut content = sandbox.guest.read_file(&at, ByteRange::default(), None).await.unwrap();
    let (mut received, mut most) = (0usize, 0);
    while let Some(part) = content.bytes.next().await {
        let part = part.unwrap();
        for (i, byte) in part.iter().enumerate().step_by(4093) {
            assert_eq!(*byte, piece[(received + i) % piece.len()], "byte {}", received + i);
        }
        received += part.len();
        most = most.max(resident());
    }
    assert_eq!(received as u64, pieces << 20);
    assert!(most.saturating_sub(before) < 48 << 20, "host memory grew by {} MiB", most.saturating_sub(before) >> 20);
    sandbox.destroy().await;
}

pub(crate) async fn ranges_and_offsets(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let guest = &*sandbox.guest;
    let at = path("notes/today.txt");
    let new = WriteOptions { make_parents: true, mode: Some(0o640), ..WriteOptions::default() };
    let info = guest.write_file(&at, &new, bytes("0123456789")).await.unwrap();
    assert_eq!((info.size, info.mode & 0o777, info.uid, info.owner.as_deref()), (10, 0o640, 1000, Some("user")));
    assert_eq!(read(guest, &at, ByteRange { offset: 3, length: Some(4) }).await.unwrap(), b"3456");
    assert_eq!(read(guest, &at, ByteRange { offset: 8, length: None }).await.unwrap(), b"89");
    assert_eq!(read(guest, &at, ByteRange { offset: 99, length: Some(4) }).await.unwrap(), b"");
    let inode = |text: String| text.trim().to_owned();
    let before = inode(run(guest, &["stat", "-c", "%i", "notes/today.txt"]).await.text());
    guest.write_file(&at, &WriteOptions { offset: Some(5), ..WriteOptions::default() }, bytes("XY")).await.unwrap();
    assert_eq!(read(guest, &at, ByteRange::default()).await.unwrap(), b"01234XY789");
    guest.write_file(&at, &WriteOptions::default(), bytes("short")).await.unwrap();
    assert_eq!(read(guest, &at, ByteRange::default()).await.unwrap(), b"short");
    assert_eq!(inode(run(guest, &["stat", "-c", "%i", "notes/today.txt"]).await.text()), before, "written in place");
    let again = guest.write_file(&at, &WriteOptions { create_new: true, ..WriteOptions::default() }, bytes("no")).await;
    assert!(matches!(again, Err(GuestError::Refused { errno: 17, .. })), "{again:?}");
    assert!(!read(guest, &path("/proc/self/status"), ByteRange::default()).await.unwrap().is_empty(), "files without a size can be read");
    sandbox.destroy().await;
}

pub(crate) async fn odd_names_survive(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let guest = &*sandbox.guest;
    let names: Vec<Vec<u8>> = vec![
        "日本語 ☃ naïve".into(),
        b"new\nline".to_vec(),
        b" lead and trail ".to_vec(),
        b"-rf".to_vec(),
        b"quote'\"$(x)`y`\\".to_vec(),
        b"\x1b[31mred".to_vec(),
        b"invalid \xff\xfe utf-8".to_vec(),
        b"...".to_vec(),
        vec![b'n'; 255],
    ];
    for name in &names {
        let at = GuestPath::new([b"odd/".as_slice(), name].concat()).unwrap();
        let options = WriteOptions { make_parents: true, ..WriteOptions::default() };
        guest.write_file(&at, &options, bytes(name.clone())).await.unwrap_or_else(|error| panic!("{at}: {error}"));
        assert_eq!(&read(guest, &at, ByteRange::default()).await.unwrap(), name);
    }
    let listed = guest.list(&path("odd"), &ListOptions::default()).await.unwrap();
    let found: BTreeSet<Vec<u8>> = listed.iter().map(|info| info.path.as_bytes().rsplit(|b| *b == b'/').next().unwrap().to_vec()).collect();
    assert_eq!(found, names.into_iter().collect());
    sandbox.destroy().await;
}

pub(crate) async fn what_is_listed_is_what_is_there(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let guest = &*sandbox.guest;
    assert!(guest.make_directory(&path("tree/a/b/c"), None).await.unwrap());
    assert!(!guest.make_directory(&path("tree/a/b/c"), None).await.unwrap(), "it was there");
    sh(guest, "cd tree && echo x > f && echo y > a/g && ln -s ../f a/link && ln -s /etc a/loop").await.text();
    let names = |depth| async move {
        let options = ListOptions { depth, ..ListOptions::default() };
        let mut list: Vec<String> =
            guest.list(&path("/home/user/tree"), &options).await.unwrap().iter().map(|info| info.path.to_string()).collect();
        list.sort();
        list
    };
    assert_eq!(names(1).await, ["/home/user/tree/a", "/home/user/tree/f"]);
    assert_eq!(
        names(2).await,
        [
            "/home/user/tree/a",
            "/home/user/tree/a/b",
            "/home/user/tree/a/g",
            "/home/user/tree/a/link",
            "/home/user/tree/a/loop",
            "/home/user/tree/f"
        ],
        "links are not followed"
    );
    let link = guest.stat(&path("tree/a/link"), None).await.unwrap();
    assert_eq!((link.kind, link.symlink_target), (FileKind::Symlink, Some(b"../f".to_vec())));
    assert_eq!(guest.stat(&path("tree/a"), None).await.unwrap().kind, FileKind::Directory);
    assert_eq!(guest.stat(&path("/dev/null"), None).await.unwrap().kind, FileKind::Other);
    let missing = guest.stat(&path("tree/nothing"), None).await.unwrap_err();
    assert!(matches!(missing, GuestError::Refused { errno: 2, .. }), "{missing:?}");
    sandbox.destroy().await;
}

pub(crate) async fn moves_and_removals(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let guest = &*sandbox.guest;
    sh(guest, "mkdir -p from/deep to && echo one > from/deep/file && echo two > to/file").await.text();
    guest.rename(&path("from/deep/file"), &path("to/file"), None).await.unwrap();
    assert_eq!(read(guest, &path("to/file"), ByteRange::default()).await.unwrap(), b"one\n");
    guest.rename(&path("from"), &path("to/from"), None).await.unwrap();
    assert_eq!(guest.stat(&path("to/from/deep"), None).await.unwrap().kind, FileKind::Directory);
    sh(guest, "ln -s /home/user/keep to/from/link; mkdir keep; echo k > keep/k").await.text();
    guest.remove(&path("to"), None).await.unwrap();
    assert!(guest.stat(&path("to"), None).await.is_err());
    assert_eq!(read(guest, &path("keep/k"), ByteRange::default()).await.unwrap(), b"k\n", "a removal does not follow links");
    // A directory of the template, which a lower layer holds, can be moved and removed too.
    guest.rename(&path("/usr/share/perl5"), &path("/usr/share/perl6"), root().as_ref()).await.unwrap();
    guest.remove(&path("/usr/share/perl6"), root().as_ref()).await.unwrap();
    sandbox.destroy().await;
}

pub(crate) async fn modes_owners_and_attributes(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let guest = &*sandbox.guest;
    let at = path("/home/user/f");
    guest.write_file(&at, &WriteOptions::default(), bytes("x")).await.unwrap();
    guest.set_mode(&at, 0o755, None).await.unwrap();
    assert_eq!(guest.stat(&at, None).await.unwrap().mode & 0o777, 0o755);
    guest.set_owner(&at, Some(0), Some(0), root().as_ref()).await.unwrap();
    let info = guest.stat(&at, None).await.unwrap();
    assert_eq!((info.uid, info.gid, info.owner.as_deref()), (0, 0, Some("root")));
    assert!(guest.set_owner(&at, Some(1000), None, None).await.is_err(), "an ordinary user cannot give files away or take them");
    let mine = path("/home/user/mine");
    let options = WriteOptions { tell_attributes: true, ..WriteOptions::default() };
    let write = async || guest.write_file(&mine, &options, bytes("x")).await.unwrap();
    assert_eq!(write().await.attributes, Some(false));
    assert_eq!(guest.get_xattr(&mine, "user.note", None).await.unwrap(), None);
    guest.set_xattr(&mine, "user.note", Some(b"\0binary\xff"), None).await.unwrap();
    assert_eq!(guest.get_xattr(&mine, "user.note", None).await.unwrap().unwrap(), &b"\0binary\xff"[..]);
    assert_eq!(write().await.attributes, Some(true), "it is still there when the file is written anew, and that is told");
    guest.set_xattr(&mine, "user.note", None, None).await.unwrap();
    assert_eq!(guest.get_xattr(&mine, "user.note", None).await.unwrap(), None);
    assert_eq!(write().await.attributes, Some(false));
    sandbox.destroy().await;
}

/// Where the host keeps them for a kernel that cannot, they follow the file, and are nobody's who may not have the file.
pub(crate) async fn attributes_belong_to_files_and_obey_their_permissions(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let guest = &*sandbox.guest;
    assert!(sandbox.runtime.capabilities().xattrs);
    let noted = async |at: &str, user: Option<UserName>| guest.get_xattr(&path(at), "user.note", user.as_ref()).await;
    guest.write_file(&path("/home/user/first"), &WriteOptions::default(), bytes("x")).await.unwrap();
    guest.set_xattr(&path("first"), "user.note", Some(b"mine"), None).await.unwrap();
    guest.rename(&path("/home/user/first"), &path("/home/user/second"), None).await.unwrap();
    assert_eq!(noted("/home/user/second", None).await.unwrap().as_deref(), Some(&b"mine"[..]), "it moved with its file");
    assert!(noted("/home/user/first", None).await.is_err(), "and is not where that was");

    sh(guest, "ln -s second /home/user/link; ln -s /etc/hostname /home/user/name; ln -s ../../../../../../../etc/passwd /home/user/above")
        .await;
    assert_eq!(noted("/home/user/link", None).await.unwrap().as_deref(), Some(&b"mine"[..]));
    for (link, target) in [("/home/user/name", "/etc/hostname"), ("/home/user/above", "/etc/passwd")] {
        guest.set_xattr(&path(link), "user.note", Some(b"theirs"), None).await.expect_err("an ordinary user cannot mark root's files");
        guest.set_xattr(&path(link), "user.note", Some(target.as_bytes()), root().as_ref()).await.unwrap();
        assert_eq!(noted(target, None).await.unwrap().as_deref(), Some(target.as_bytes()), "a link leads to the sandbox's own file");
        let mut value = [0; 64];
        let outside = rustix::fs::getxattr(target, "user.note", &mut value);
        assert!(outside.is_err(), "and never to the host's: {outside:?}");
    }
    guest.set_mode(&path("/home/user/second"), 0o600, root().as_ref()).await.unwrap();
    guest.set_owner(&path("/home/user/second"), Some(0), Some(0), root().as_ref()).await.unwrap();
    assert!(noted("/home/user/second", None).await.is_err(), "whoever may not read a file may not read what is noted on it");
    for name in ["trusted.overlay.opaque", "security.capability", "trusted.note"] {
        let refused = guest.set_xattr(&path("/home/user/link"), name, Some(b"y"), None).await;
        assert!(matches!(refused, Err(GuestError::Refused { .. })), "{name}: {refused:?}");
    }
    sandbox.destroy().await;
}

pub(crate) async fn users_cannot_do_more_than_they_may(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let guest = &*sandbox.guest;
    let denied = |result: Result<(), GuestError>, what: &str| {
        assert!(matches!(result, Err(GuestError::Refused { errno: 1 | 13, .. })), "{what}: {result:?}");
    };
    denied(read(guest, &path("/etc/shadow"), ByteRange::default()).await.map(drop), "read");
    denied(guest.write_file(&path("/etc/x"), &WriteOptions::default(), bytes("x")).await.map(drop), "write");
    denied(guest.remove(&path("/etc/passwd"), None).await, "remove");
    denied(guest.rename(&path("/etc/passwd"), &path("/home/user/p"), None).await.map(drop), "move");
    denied(guest.make_directory(&path("/usr/new"), None).await.map(drop), "mkdir");
    denied(guest.set_mode(&path("/etc/passwd"), 0o777, None).await, "chmod");
    let as_root = WriteOptions { user: root(), ..WriteOptions::default() };
    guest.write_file(&path("/etc/x"), &as_root, bytes("x")).await.unwrap();
    assert_eq!(guest.stat(&path("/etc/x"), None).await.unwrap().uid, 0);
    sandbox.destroy().await;
}

pub(crate) async fn users_are_known_as_soon_as_they_are_made(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let guest = &*sandbox.guest;
    for name in ["first", "second"] {
        let new: UserName = name.parse().unwrap();
        let at = path(format!("/home/{name}/file"));
        let options = WriteOptions { user: Some(new.clone()), ..WriteOptions::default() };
        let stranger = guest.write_file(&at, &options, bytes("x")).await;
        assert!(stranger.is_err(), "nobody is called {name} yet");
        assert_eq!(sh(guest, &format!("sudo useradd -m {name}")).await.code(), 0);
        let info = guest.write_file(&at, &options, bytes("x")).await.unwrap();
        assert_eq!((info.owner.as_deref(), info.size), (Some(name), 1));
    }
    // In place, to the same length: the file is the same one and only its time tells.
    assert_eq!(sh(guest, "sudo sh -c 'sed s/second:/secund:/ /etc/passwd > /tmp/p; cat /tmp/p > /etc/passwd'").await.code(), 0);
    assert_eq!(guest.stat(&path("/home/second/file"), root().as_ref()).await.unwrap().owner.as_deref(), Some("secund"));
    sandbox.destroy().await;
}

pub(crate) async fn a_claimed_file_belongs_to_whoever_may_have_it(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let guest = &*sandbox.guest;
    let claim = |user: Option<UserName>| WriteOptions { user, claim: true, ..WriteOptions::default() };
    assert_eq!(sh(guest, "echo root | sudo tee shared && sudo chmod 666 shared && echo user > mine").await.code(), 0);
    let theirs = guest.write_file(&path("shared"), &claim(None), bytes("x")).await.unwrap();
    assert_eq!((theirs.uid, theirs.size), (0, 1), "it was written, and is still root's");
    let taken = guest.write_file(&path("/home/user/mine"), &claim(root()), bytes("")).await.unwrap();
    assert_eq!((taken.uid, taken.gid, taken.size), (0, 0, 0), "root may have it");
    let left = guest.write_file(&path("/home/user/shared"), &WriteOptions { user: root(), ..WriteOptions::default() }, bytes("y")).await;
    assert_eq!(left.unwrap().uid, 0);
    sandbox.destroy().await;
}

pub(crate) async fn watching_sees_changes_below(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let guest = &*sandbox.guest;
    guest.make_directory(&path("watched/old"), None).await.unwrap();
    let mut events = guest.watch(&path("watched"), true, None).await.unwrap();
    let wanted = [
        (FileEventKind::Created, "old/file"),
        (FileEventKind::Written, "old/file"),
        (FileEventKind::Attributes, "old/file"),
        (FileEventKind::Renamed, "old/file"),
        (FileEventKind::Created, "old/moved"),
        (FileEventKind::Created, "new"),
        (FileEventKind::Created, "new/inner"),
        (FileEventKind::Removed, "old/moved"),
    ];
    let script =
        "cd watched; echo x > old/file; chmod 600 old/file; mv old/file old/moved; mkdir new; sleep 0.5; echo y > new/inner; rm old/moved";
    assert_eq!(sh(guest, script).await.code(), 0);
    let mut seen = Vec::new();
    let collect = async {
        while !wanted.iter().all(|(kind, name)| seen.contains(&(*kind, name.as_bytes().to_vec()))) {
            let event = events.next().await.expect("watching goes on").unwrap();
            seen.push((event.kind, event.name));
        }
    };
    let all = tokio::time::timeout(Duration::from_secs(60), collect).await.is_ok();
    let readable: Vec<String> = seen.iter().map(|(kind, name)| format!("{kind:?} {}", String::from_utf8_lossy(name))).collect();
    assert!(all, "not all of {wanted:?} in {readable:?}");
    drop(events);
    assert!(guest.watch(&path("nowhere"), true, None).await.is_err());
    sandbox.destroy().await;
}

pub(crate) async fn searching_finds_names_and_content(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let guest = &*sandbox.guest;
    sh(
        guest,
        "mkdir -p s/deep; printf 'one\\ntwo needle\\n' > s/a.txt; printf 'needle\\0bin' > s/deep/b.bin; echo hay > s/c.txt; ln -s / s/loop",
    )
    .await
    .text();
    let query = |name: Option<&str>, content: Option<&str>| SearchQuery {
        user: None,
        root: path("s"),
        name: name.map(str::to_owned),
        content: content.map(|text| text.as_bytes().to_vec()),
        max_hits: 100,
    };
    let find = |query: SearchQuery| async move {
        let mut hits = guest.search(&query).await.unwrap();
        let mut found = Vec::new();
        while let Some(hit) = hits.next().await {
            let hit = hit.unwrap();
            found.push((hit.path.to_string().rsplit('/').next().unwrap().to_owned(), hit.line));
        }
        found.sort();
        found
    };
    assert_eq!(find(query(Some("*.txt"), None)).await, [("a.txt".into(), None), ("c.txt".into(), None)]);
    assert_eq!(find(query(Some("*.txt"), Some("needle"))).await, [("a.txt".into(), Some(2))]);
    assert_eq!(find(query(None, Some("needle"))).await.len(), 2);
    sandbox.destroy().await;
}
