//! Layers and templates in the store: equal content is one layer, a changed byte is noticed, a crash leaves nothing, and nothing that is
//! used can be removed.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use belljar_image::{ArchiveForm, ArchiveLimits, LayerInfo, LayerStore, Silent, StoreError};
use belljar_types::{Template, TemplateDefaults, TemplateName};

use crate::archives::{Archive, Entry};

fn store() -> (tempfile::TempDir, LayerStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = LayerStore::open(&directory.path().join("pool")).unwrap();
    (directory, store)
}

fn import(store: &LayerStore, tar: &[u8], form: ArchiveForm) -> LayerInfo {
    store.import_tar(tar, form, ArchiveLimits::default(), "test").unwrap()
}

fn root(store: &LayerStore, tar: &[u8]) -> (LayerInfo, PathBuf) {
    let info = import(store, tar, ArchiveForm::RootFilesystem);
    let path = store.layer_directory(&info.digest);
    (info, path)
}

fn sample() -> Archive {
    Archive::new()
        .add(Entry::directory("./"))
        .add(Entry::directory("./bin"))
        .add(Entry::noise("./bin/tool", 100_000).mode(0o4755))
        .add(Entry::hard_link("./bin/alias", "./bin/tool"))
        .add(Entry::symlink("./sbin", "bin"))
        .add(Entry::file("./etc/deep/file", b"text").owner(1000, 1001).mode(0o640))
        .add(Entry::kind("./pipe", b'6'))
        .add(Entry::raw_name(b"./\xff\xfe odd \n name", b"x"))
}

#[test]
fn an_archive_is_unpacked_faithfully() {
    let (_guard, store) = store();
    let (info, path) = root(&store, &sample().tar());
    let tool = path.join("bin/tool").symlink_metadata().unwrap();
    assert_eq!((tool.len(), tool.mode() & 0o7777, tool.nlink(), tool.mtime()), (100_000, 0o4755, 2, 1_700_000_000));
    assert_eq!(path.join("bin/alias").metadata().unwrap().ino(), tool.ino());
    assert_eq!(fs::read_link(path.join("sbin")).unwrap(), PathBuf::from("bin"));
    let file = path.join("etc/deep/file").metadata().unwrap();
    assert_eq!((file.uid(), file.gid(), file.mode() & 0o7777), (1000, 1001, 0o640));
    assert_eq!(path.join("etc").metadata().unwrap().mode() & 0o7777, 0o755, "a directory that is only implied gets plain attributes");
    assert!(path.join("pipe").metadata().unwrap().file_type().is_fifo());
    let odd: std::ffi::OsString = std::os::unix::ffi::OsStringExt::from_vec(b"\xff\xfe odd \n name".to_vec());
    assert_eq!(fs::read(path.join(odd)).unwrap(), b"x");
    assert_eq!((info.size, info.files), (100_005, 9));
    store.verify(&info.digest).unwrap();
}

#[test]
fn a_long_name_that_is_cut_after_a_slash_is_still_a_file() {
    let (_guard, store) = store();
    // What a plain header holds of a long name may end anywhere; the whole name is in the extended header.
    let tar = Archive::new().add(Entry::file("cut/", b"text").pax("path", b"cut/here")).add(Entry::file("after", b"more")).tar();
    let (_, path) = root(&store, &tar);
    assert_eq!(fs::read(path.join("cut/here")).unwrap(), b"text");
    assert_eq!(fs::read(path.join("after")).unwrap(), b"more");
}

#[test]
fn equal_content_is_one_layer_however_it_came() {
    let (guard, store) = store();
    let (plain, path) = root(&store, &sample().tar());
    assert_eq!(root(&store, &sample().gzip()).0.digest, plain.digest);
    assert_eq!(root(&store, &sample().zstd()).0.digest, plain.digest);
    assert_eq!(store.import_tree(&path, "copy").unwrap().digest, plain.digest);
    let reordered = Archive::new()
        .add(Entry::file("bin/tool", b"replaced below"))
        .add(Entry::file("etc/deep/file", b"text").owner(1000, 1001).mode(0o640).mtime(5))
        .add(Entry::raw_name(b"\xff\xfe odd \n name", b"x"))
        .add(Entry::kind("pipe", b'6'))
        .add(Entry::noise("bin/tool", 100_000).mode(0o4755))
        .add(Entry::hard_link("bin/alias", "bin/tool"))
        .add(Entry::symlink("sbin", "bin"));
    assert_eq!(root(&store, &reordered.tar()).0.digest, plain.digest);
    assert_eq!(store.layers().unwrap().len(), 1);
    assert_eq!(fs::read_dir(guard.path().join("pool/staging")).unwrap().count(), 0);
}

#[test]
fn every_difference_that_a_sandbox_can_see_is_another_layer() {
    let (_guard, store) = store();
    let base = || Entry::file("f", b"content");
    let different = [
        vec![base()],
        vec![Entry::file("f", b"Content")],
        vec![base().mode(0o600)],
        vec![base().owner(1, 0)],
        vec![base().owner(0, 1)],
        vec![base().pax("SCHILY.xattr.user.a", b"1")],
        vec![base().pax("SCHILY.xattr.user.a", b"2")],
        vec![base(), Entry::directory("d")],
        vec![base(), Entry::directory("d").mode(0o700)],
        vec![base(), Entry::file("g", b"content")],
        vec![base(), Entry::hard_link("g", "f")],
        vec![base(), Entry::symlink("g", "f")],
        vec![base(), Entry::symlink("g", "./f")],
        vec![Entry::directory("./").mode(0o700), base()],
    ];
    let mut digests: BTreeMap<_, usize> = BTreeMap::new();
    for (number, entries) in different.into_iter().enumerate() {
        let archive = entries.into_iter().fold(Archive::new(), Archive::add);
        let twin = digests.insert(root(&store, &archive.tar()).0.digest, number);
        assert_eq!(twin, None, "case {number} has a twin");
    }
}

#[test]
fn later_entries_win_whatever_kind_they_are() {
    let (_guard, store) = store();
    let archive = Archive::new()
        .add(Entry::directory("a"))
        .add(Entry::file("a/inner", b"old"))
        .add(Entry::file("a", b"now a file"))
        .add(Entry::file("b", b"old"))
        .add(Entry::directory("b"))
        .add(Entry::file("b/inner", b"new"))
        .add(Entry::file("c", b"shared"))
        .add(Entry::hard_link("d", "c"))
        .add(Entry::file("c", b"alone"));
    let (_, path) = root(&store, &archive.tar());
    assert_eq!(fs::read(path.join("a")).unwrap(), b"now a file");
    assert_eq!(fs::read(path.join("b/inner")).unwrap(), b"new");
    assert_eq!((fs::read(path.join("c")).unwrap(), fs::read(path.join("d")).unwrap()), (b"alone".to_vec(), b"shared".to_vec()));
}

#[test]
fn holes_stay_holes() {
    let (_guard, store) = store();
    let archive =
        Archive::new().add(Entry::sparse("holes", 64 << 20, &[(0, b"start"), (32 << 20, b"middle")])).add(Entry::file("next", b"n"));
    let (_, path) = root(&store, &archive.tar());
    let holes = fs::read(path.join("holes")).unwrap();
    assert_eq!((holes.len(), &holes[..5], &holes[32 << 20..(32 << 20) + 6]), (64 << 20, &b"start"[..], &b"middle"[..]));
    assert!(path.join("holes").metadata().unwrap().blocks() * 512 < 1 << 20);
    assert_eq!(fs::read(path.join("next")).unwrap(), b"n");
}

#[test]
fn whiteouts_become_what_overlayfs_understands_in_any_order() {
    let (_guard, store) = store();
    let archive = Archive::new()
        .add(Entry::file("etc/.wh.gone", b""))
        .add(Entry::file("opaque/.wh..wh..opq", b""))
        .add(Entry::file("opaque/new", b"n"))
        .add(Entry::file("before/.wh.dir", b""))
        .add(Entry::directory("before/dir"))
        .add(Entry::directory("after/dir"))
        .add(Entry::file("after/.wh.dir", b""))
        .add(Entry::file("file", b"kept"))
        .add(Entry::file(".wh.file", b""));
    let info = import(&store, &archive.tar(), ArchiveForm::OciLayer);
    let path = store.layer_directory(&info.digest);
    let gone = path.join("etc/gone").symlink_metadata().unwrap();
    assert!(gone.file_type().is_char_device() && gone.rdev() == 0);
    let opaque = |name: &str| {
        let mut value = [0; 8];
        rustix::fs::getxattr(path.join(name), "trusted.overlay.opaque", &mut value[..]).map(|length| value[..length].to_vec())
    };
    for name in ["opaque", "before/dir", "after/dir"] {
        assert_eq!(opaque(name).unwrap(), b"y", "{name}");
    }
    assert!(opaque("etc").is_err());
    assert_eq!(fs::read(path.join("file")).unwrap(), b"kept");
    assert_eq!(store.import_tree(&path, "copy").unwrap().digest, info.digest, "a copy keeps whiteouts and opaque directories");
    let as_root = import(&store, &archive.tar(), ArchiveForm::RootFilesystem);
    assert!(store.layer_directory(&as_root.digest).join("etc/.wh.gone").is_file(), "in a root filesystem it is only a name");
}

#[test]
fn a_change_on_disk_is_noticed() {
    let (_guard, store) = store();
    let (info, path) = root(&store, &sample().tar());
    fs::write(path.join("etc/deep/file"), b"Text").unwrap();
    assert!(matches!(store.verify(&info.digest), Err(StoreError::Changed { .. })));
    fs::write(path.join("etc/deep/file"), b"text").unwrap();
    store.verify(&info.digest).unwrap();
    fs::set_permissions(path.join("bin"), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(store.verify(&info.digest), Err(StoreError::Changed { .. })));
}

#[test]
fn two_who_make_the_same_layer_at_once_make_one() {
    let (guard, store) = store();
    let tar = sample().tar();
    let digests: Vec<_> = std::thread::scope(|scope| {
        let makers: Vec<_> = (0..8).map(|_| scope.spawn(|| root(&store, &tar).0.digest)).collect();
        makers.into_iter().map(|maker| maker.join().unwrap()).collect()
    });
    assert!(digests.iter().all(|digest| *digest == digests[0]));
    assert_eq!(store.layers().unwrap().len(), 1);
    store.verify(&digests[0]).unwrap();
    assert_eq!(fs::read_dir(guard.path().join("pool/staging")).unwrap().count(), 0);
}

#[test]
fn what_a_crash_left_is_swept_and_what_is_being_made_is_not() {
    let (guard, store) = store();
    let staging = guard.path().join("pool/staging");
    fs::create_dir_all(staging.join("left-by-a-crash/fs/deep")).unwrap();
    fs::write(staging.join("left-by-a-crash/fs/deep/file"), b"x").unwrap();
    let (sender, receiver) = std::sync::mpsc::channel::<Vec<u8>>();
    let tar = sample().tar();
    std::thread::scope(|scope| {
        let maker =
            scope.spawn(|| store.import_tar(Fed(receiver, Vec::new()), ArchiveForm::RootFilesystem, ArchiveLimits::default(), "slow"));
        sender.send(tar[..1024].to_vec()).unwrap();
        while !fs::read_dir(&staging).unwrap().any(|entry| entry.unwrap().path().join("fs").is_dir() && !is_left(&staging)) {
            LayerStore::open(&guard.path().join("pool")).unwrap();
        }
        LayerStore::open(&guard.path().join("pool")).unwrap();
        sender.send(tar[1024..].to_vec()).unwrap();
        drop(sender);
        let info = maker.join().unwrap().unwrap();
        store.verify(&info.digest).unwrap();
    });
    assert!(!is_left(&staging));
}

/// On a full disk a sweep removes a layer where it is, its description first; what a crash then leaves is none, and keeps nobody from making it anew.
#[test]
fn a_layer_that_was_half_removed_is_none_and_can_be_made_again() {
    let (guard, store) = store();
    let tar = sample().tar();
    let digest = root(&store, &tar).0.digest;
    let place = guard.path().join("pool/layers").join(digest.as_str());
    fs::remove_file(place.join("layer.json")).unwrap();
    fs::remove_dir_all(place.join("fs/bin")).unwrap();
    assert_eq!(store.layers().unwrap(), []);
    assert_eq!(root(&store, &tar).0.digest, digest);
    store.verify(&digest).unwrap();
    assert_eq!(fs::read_dir(guard.path().join("pool/staging")).unwrap().count(), 0);
}

/// Set for the process that is to be killed: the pool it works in.
const VICTIM: &str = "BELLJAR_TEST_VICTIM_POOL";

#[test]
fn a_maker_that_is_killed_leaves_nothing() {
    if let Some(pool) = std::env::var_os(VICTIM) {
        let store = LayerStore::open(pool.as_ref()).unwrap();
        store.import_tar(std::io::stdin(), ArchiveForm::RootFilesystem, ArchiveLimits::default(), "victim").unwrap();
        panic!("the archive never ends, and neither may the import");
    }
    let (guard, store) = store();
    let staging = guard.path().join("pool/staging");
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "layers::a_maker_that_is_killed_leaves_nothing"])
        .env(VICTIM, guard.path().join("pool"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let tar = sample().tar();
    victim.stdin.as_mut().unwrap().write_all(&tar[..tar.len() / 2]).unwrap();
    let half_made = || fs::read_dir(&staging).unwrap().any(|entry| entry.unwrap().path().join("fs/bin/tool").exists());
    while !half_made() {
        assert!(victim.try_wait().unwrap().is_none(), "the victim died by itself");
        std::thread::yield_now();
    }
    // Alive it is spared, dead it is swept.
    LayerStore::open(&guard.path().join("pool")).unwrap();
    assert!(half_made());
    victim.kill().unwrap();
    victim.wait().unwrap();
    LayerStore::open(&guard.path().join("pool")).unwrap();
    assert_eq!(fs::read_dir(&staging).unwrap().count(), 0);
    assert!(store.layers().unwrap().is_empty());
}

fn is_left(staging: &std::path::Path) -> bool {
    staging.join("left-by-a-crash").exists()
}

struct Fed(std::sync::mpsc::Receiver<Vec<u8>>, Vec<u8>);

impl std::io::Read for Fed {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.1.is_empty() {
            self.1 = self.0.recv().unwrap_or_default();
        }
        let length = buffer.len().min(self.1.len());
        buffer[..length].copy_from_slice(&self.1[..length]);
        self.1.drain(..length);
        Ok(length)
    }
}

#[test]
fn a_layer_that_a_template_uses_cannot_be_removed() {
    let (guard, store) = store();
    let (info, path) = root(&store, &sample().tar());
    let name: TemplateName = "mine".parse().unwrap();
    let template = Template {
        name: name.clone(),
        layers: vec![info.digest.clone()],
        defaults: TemplateDefaults::default(),
        origin: "test".into(),
        created_at: 7,
    };
    store.put_template(&template).unwrap();
    assert_eq!(store.templates().unwrap(), std::slice::from_ref(&template));
    let error = store.remove(&info.digest).unwrap_err();
    assert_eq!(error.to_string(), format!("layer {} is used by template mine; remove that first", info.digest));
    assert!(path.exists());
    assert!(store.remove_template(&name).unwrap());
    assert!(!store.remove_template(&name).unwrap());
    assert!(store.remove(&info.digest).unwrap());
    assert!(!store.remove(&info.digest).unwrap());
    assert!(!path.exists());
    assert_eq!(fs::read_dir(guard.path().join("pool/staging")).unwrap().count(), 0);
    assert!(matches!(store.put_template(&template), Err(StoreError::Missing(_))));
}

#[test]
fn the_agents_layer_is_the_same_every_time() {
    let (guard, store) = store();
    let binary = guard.path().join("guest");
    fs::write(&binary, b"agent").unwrap();
    let digest = store.agent_layer(&binary).unwrap();
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(store.agent_layer(&binary).unwrap(), digest);
    let path = store.layer_directory(&digest);
    let agent = path.join(".belljar/guest");
    assert_eq!((fs::read(&agent).unwrap(), agent.metadata().unwrap().mode() & 0o7777), (b"agent".to_vec(), 0o755));
    for name in ["usr/bin/sudo", "usr/local/bin/sudo", "usr/bin/belljar-keep"] {
        assert_eq!(fs::read_link(path.join(name)).unwrap(), PathBuf::from("/.belljar/guest"));
    }
    fs::write(&binary, b"another agent").unwrap();
    assert_ne!(store.agent_layer(&binary).unwrap(), digest);
}

#[test]
fn a_tarball_becomes_a_template_with_accounts_and_mount_points() {
    let (_guard, store) = store();
    let archive = Archive::new()
        .add(Entry::directory("etc").mode(0o711).owner(3, 4))
        .add(Entry::file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n"))
        .add(Entry::directory("home/node").owner(1000, 1000))
        .add(Entry::directory("usr/bin"))
        .add(Entry::symlink("bin", "usr/bin"))
        .add(Entry::file("usr/bin/bash", b"").mode(0o755))
        .add(Entry::symlink("run", "/var/run"))
        .add(Entry::directory("tmp").mode(0o700));
    let template = store.import_tarball("mine".parse().unwrap(), &archive.gzip()[..], ArchiveLimits::default(), &Silent).unwrap();
    assert_eq!(template.layers.len(), 2);
    let added = store.layer_directory(&template.layers[1]);
    let passwd = fs::read_to_string(added.join("etc/passwd")).unwrap();
    assert!(passwd.ends_with("user:x:1000:1000::/home/node:/bin/sh\n"), "{passwd}");
    let etc = added.join("etc").metadata().unwrap();
    assert_eq!((etc.mode() & 0o7777, etc.uid(), etc.gid()), (0o711, 3, 4), "a repeated directory keeps its attributes");
    for name in ["proc", "sys", "dev", ".belljar", "root", "var/run"] {
        assert!(added.join(name).symlink_metadata().unwrap().is_dir(), "{name}");
    }
    assert!(!added.join("run").exists() && !added.join("tmp").exists() && !added.join("home").exists(), "what is there is not repeated");
    assert_eq!(store.template(&template.name).unwrap(), Some(template));
}

/// On as much stack as a thread has that may block. The control is a tree that is just not too deep.
#[test]
fn a_tree_that_is_deeper_than_the_stack_is_refused_by_its_path() {
    const STACK: usize = 2 << 20;
    let check = |depth: usize, name: &str| {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().join("top");
        fs::create_dir(&top).unwrap();
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
        let mut at = rustix::fs::open(&top, flags, rustix::fs::Mode::empty()).unwrap();
        for _ in 0..depth {
            rustix::fs::mkdirat(&at, name, rustix::fs::Mode::RWXU).unwrap();
            at = rustix::fs::openat(&at, name, flags, rustix::fs::Mode::empty()).unwrap();
        }
        let packing = std::thread::Builder::new().stack_size(STACK).spawn(move || belljar_image::pack_tree(&top, std::io::sink()));
        let packed = packing.unwrap().join().unwrap();
        // The directory drops itself with a recursion of its own.
        assert!(Command::new("rm").arg("-rf").arg(directory.path()).status().unwrap().success());
        packed.map_err(|error| error.to_string())
    };
    check(255, "d").unwrap();
    for (depth, name) in [(256, "d\n"), (20_000, "d\n"), (20, &*"d\n".repeat(120))] {
        let refused = check(depth, name).unwrap_err();
        assert!(refused.contains("directories deep") && refused.ends_with("d\\n\""), "{refused}");
    }
}
