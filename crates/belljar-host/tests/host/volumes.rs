//! Volumes without a sandbox: their content, their limit, and what somebody in a sandbox may have left in them.

use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use belljar_host::HostVolumes;
use belljar_ports::{ContentStream, VolumeError, Volumes};
use belljar_types::{ByteRange, EntryChange, FileKind, VolumeId, VolumePath, VolumeWrite};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::scene::Scene;

const OVER: VolumeWrite = VolumeWrite { change: EntryChange { uid: None, gid: None, mode: None }, overwrite: true, make_parents: true };

fn at(path: &str) -> VolumePath {
    path.parse().unwrap()
}

fn pieces(parts: &[&[u8]]) -> ContentStream {
    let parts: Vec<_> = parts.iter().map(|part| Ok(Bytes::copy_from_slice(part))).collect();
    Box::pin(stream::iter(parts))
}

async fn read(volumes: &HostVolumes, id: &VolumeId, path: &str) -> Vec<u8> {
    let file = volumes.read(id, &at(path), ByteRange::default()).await.unwrap();
    file.content
        .try_fold(Vec::new(), async |mut all, piece| {
            Ok::<_, io::Error>({
                all.extend(piece);
                all
            })
        })
        .await
        .unwrap()
}

/// Where it is on the host: what the tests do there, a sandbox does inside.
fn inside(scene: &Scene, id: &VolumeId) -> PathBuf {
    scene.host.pool_directory().join("volumes").join(id.as_str())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_is_read_whole_or_not_written() {
    let scene = Scene::new().await;
    let (volumes, id) = (scene.host.volumes(), VolumeId::random());
    volumes.make(&id, 64 << 20).await.unwrap();
    volumes.make(&id, 64 << 20).await.unwrap();
    let root = inside(&scene, &id).metadata().unwrap();
    assert_eq!((root.uid(), root.permissions().mode() & 0o7777), (1000, 0o777));

    let entry = volumes.write(&id, &at("/a/b/file"), OVER, pieces(&[b"hello ", b"", b"world"])).await.unwrap();
    assert_eq!((entry.path.as_slice(), entry.kind, entry.size), (b"a/b/file".as_slice(), FileKind::File, 11));
    assert_eq!((entry.uid, entry.gid, entry.mode), (1000, 1000, 0o644));
    assert_eq!(read(&volumes, &id, "a/b/file").await, b"hello world");
    let range = ByteRange { offset: 6, length: Some(3) };
    let piece = volumes.read(&id, &at("a/b/file"), range).await.unwrap().content.next().await.unwrap().unwrap();
    assert_eq!(&piece[..], b"wor");

    let broken: ContentStream = Box::pin(stream::iter([Ok(Bytes::from_static(b"half")), Err(io::Error::other("gone"))]));
    let cut_short = volumes.write(&id, &at("/a/b/file"), OVER, broken).await;
    assert!(matches!(cut_short, Err(VolumeError::Upload { .. })), "{cut_short:?}");
    assert_eq!(read(&volumes, &id, "a/b/file").await, b"hello world");
    let once = volumes.write(&id, &at("/a/b/file"), VolumeWrite { overwrite: false, ..OVER }, pieces(&[b"no"])).await;
    assert!(matches!(once, Err(VolumeError::EntryExists { .. })), "{once:?}");
    let orphan = volumes.write(&id, &at("/no/file"), VolumeWrite { make_parents: false, ..OVER }, pieces(&[b"no"])).await;
    assert!(matches!(orphan, Err(VolumeError::NoEntry { .. })), "{orphan:?}");

    // A file that is replaced keeps its owner and permissions.
    let change = EntryChange { uid: Some(7), gid: Some(8), mode: Some(0o600) };
    assert_eq!(volumes.change(&id, &at("/a/b/file"), change).await.unwrap().uid, 7);
    let again = volumes.write(&id, &at("/a/b/file"), OVER, pieces(&[b"again"])).await.unwrap();
    assert_eq!((again.uid, again.gid, again.mode, again.size), (7, 8, 0o600, 5));
    let refused = volumes.change(&id, &at("/a/b/file"), EntryChange { uid: Some(1 << 20), ..EntryChange::default() }).await;
    assert!(matches!(refused, Err(VolumeError::Invalid(_))), "{refused:?}");

    let large: Vec<u8> = (0..3_000_000u32).map(|number| number.to_le_bytes()[0]).collect();
    volumes.write(&id, &at("large"), OVER, pieces(&large.chunks(100_000).collect::<Vec<_>>())).await.unwrap();
    assert!(read(&volumes, &id, "large").await == large);
    volumes.make_directory(&id, &at("/x/y"), EntryChange::default(), true).await.unwrap();
    let twice = volumes.make_directory(&id, &at("/x/y"), EntryChange::default(), false).await;
    assert!(matches!(twice, Err(VolumeError::EntryExists { .. })), "{twice:?}");
    assert_eq!(volumes.rename(&id, &at("large"), &at("x/y/small")).await.unwrap().path, b"x/y/small");
    let names = |depth, limit| {
        let (volumes, id) = (&volumes, &id);
        async move {
            volumes
                .list(id, &at("/"), depth, limit)
                .await
                .unwrap()
                .iter()
                .map(|entry| String::from_utf8(entry.path.clone()).unwrap())
                .collect::<Vec<_>>()
        }
    };
    assert_eq!(names(1, 100).await, ["a", "x"]);
    assert_eq!(names(9, 100).await, ["a", "a/b", "a/b/file", "x", "x/y", "x/y/small"]);
    assert_eq!(names(9, 3).await.len(), 3);
    volumes.remove_entry(&id, &at("/x")).await.unwrap();
    assert!(matches!(volumes.stat(&id, &at("/x")).await, Err(VolumeError::NoEntry { .. })));
    assert!(volumes.remove_entry(&id, &at("/")).await.is_err() && volumes.rename(&id, &at("/a"), &at("/a/b/c")).await.is_err());
    assert_eq!(std::fs::read_dir(inside(&scene, &id)).unwrap().count(), 1, "nothing is left of what was not finished");

    volumes.remove(&id).await.unwrap();
    volumes.remove(&id).await.unwrap();
    assert!(matches!(volumes.stat(&id, &at("/a")).await, Err(VolumeError::Absent { .. })));
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limit_of_a_volume_is_said_and_a_copy_has_its_own() {
    let scene = Scene::new().await;
    let (volumes, id, copy, kept) = (scene.host.volumes(), VolumeId::random(), VolumeId::random(), VolumeId::random());
    volumes.make(&id, 4 << 20).await.unwrap();
    let noise: Vec<u8> = (0..(3u32 << 20)).map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    volumes.write(&id, &at("three"), OVER, pieces(&[&noise])).await.unwrap();
    let full = volumes.write(&id, &at("more"), OVER, pieces(&[&noise])).await;
    assert!(matches!(full, Err(VolumeError::Full { .. })), "{full:?}");
    assert!(matches!(volumes.stat(&id, &at("more")).await, Err(VolumeError::NoEntry { .. })));
    assert!(volumes.usage(&id).await.unwrap() >= 3 << 20);

    volumes.copy(&id, &copy, 8 << 20, false).await.unwrap();
    volumes.copy(&id, &kept, 1 << 20, true).await.unwrap();
    volumes.write(&copy, &at("more"), OVER, pieces(&[&noise])).await.unwrap();
    volumes.remove_entry(&id, &at("three")).await.unwrap();
    assert_eq!(read(&volumes, &copy, "three").await, noise);
    assert_eq!(read(&volumes, &kept, "three").await, noise);
    let changed = volumes.write(&kept, &at("more"), OVER, pieces(&[b"x"])).await;
    assert!(matches!(changed, Err(VolumeError::ReadOnly { .. })), "{changed:?}");
    assert!(matches!(volumes.remove_entry(&kept, &at("three")).await, Err(VolumeError::ReadOnly { .. })));
    let mut found = volumes.inventory().await.unwrap();
    found.sort();
    let mut expected = vec![id.clone(), copy.clone(), kept.clone()];
    expected.sort();
    assert_eq!(found, expected);
    let nothing = volumes.copy(&VolumeId::random(), &VolumeId::random(), 1 << 20, false).await;
    assert!(matches!(nothing, Err(VolumeError::Absent { .. })), "{nothing:?}");
    for id in [&id, &copy, &kept] {
        volumes.remove(id).await.unwrap();
    }
    scene.close().await;
}

/// First each attack as it works on whoever follows paths, then as it ends here.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_in_a_volume_leads_out_of_it_or_holds_whoever_reads() {
    let scene = Scene::new().await;
    let (volumes, id) = (scene.host.volumes(), VolumeId::random());
    volumes.make(&id, 16 << 20).await.unwrap();
    let (root, outside) = (inside(&scene, &id), tempfile::tempdir().unwrap());
    let secret = outside.path().join("secret");
    std::fs::write(&secret, "the host's").unwrap();
    symlink(&secret, root.join("link")).unwrap();
    symlink(outside.path(), root.join("directory")).unwrap();
    symlink("../../..", root.join("up")).unwrap();
    std::fs::create_dir(root.join("real")).unwrap();
    symlink("/proc/self/root", root.join("real/magic")).unwrap();
    mknodat(CWD, root.join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
    mknodat(CWD, root.join("device"), FileType::CharacterDevice, Mode::from_raw_mode(0o666), rustix::fs::makedev(1, 5)).unwrap();

    // Whoever follows is led out.
    assert_eq!(std::fs::read_to_string(root.join("link")).unwrap(), "the host's");
    assert_eq!(std::fs::read_to_string(root.join("directory/secret")).unwrap(), "the host's");
    std::fs::write(root.join("directory/planted"), "by a sandbox").unwrap();
    assert!(outside.path().join("planted").exists());
    std::fs::remove_file(outside.path().join("planted")).unwrap();

    for path in ["link", "directory/secret", "up/pool.img", "real/magic/etc/passwd", "pipe", "device", "real"] {
        let opened = volumes.read(&id, &at(path), ByteRange::default()).await.map(|file| file.entry);
        assert!(matches!(opened, Err(VolumeError::WrongKind { .. })), "{path}: {opened:?}");
    }
    for path in ["link", "directory/planted", "real/magic/tmp/planted", "pipe", "device", "directory"] {
        let written = volumes.write(&id, &at(path), OVER, pieces(&[b"planted"])).await;
        assert!(matches!(written, Err(VolumeError::WrongKind { .. })), "{path}: {written:?}");
    }
    for path in ["directory", "directory/secret", "up"] {
        let listed = volumes.list(&id, &at(path), 1, 10).await;
        assert!(matches!(listed, Err(VolumeError::WrongKind { .. })), "{path}: {listed:?}");
        let made = volumes.make_directory(&id, &at(&format!("{path}/made")), EntryChange::default(), true).await;
        assert!(matches!(made, Err(VolumeError::WrongKind { .. })), "{path}: {made:?}");
        let changed = volumes.change(&id, &at(path), EntryChange { mode: Some(0o777), ..EntryChange::default() }).await;
        assert!(matches!(changed, Err(VolumeError::WrongKind { .. })), "{path}: {changed:?}");
    }
    assert!(volumes.remove_entry(&id, &at("directory/secret")).await.is_err());
    assert!(volumes.rename(&id, &at("real"), &at("directory/real")).await.is_err());
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "the host's");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    assert_eq!(std::fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o644);

    // What they are is told, and they can be removed: themselves, not what they point to.
    let link = volumes.stat(&id, &at("link")).await.unwrap();
    assert_eq!((link.kind, link.symlink_target.as_deref()), (FileKind::Symlink, Some(secret.as_os_str().as_encoded_bytes())));
    assert_eq!(volumes.list(&id, &at("/"), 9, 100).await.unwrap().len(), 7);
    for path in ["link", "directory", "up", "real", "pipe", "device"] {
        volumes.remove_entry(&id, &at(path)).await.unwrap();
    }
    assert!(volumes.list(&id, &at("/"), 1, 10).await.unwrap().is_empty());
    assert!(secret.exists());
    volumes.remove(&id).await.unwrap();
    scene.close().await;
}

/// Deeper than a stack holds calls and a process open files.
#[tokio::test(flavor = "multi_thread")]
async fn a_tree_of_any_depth_is_removed() {
    let scene = Scene::new().await;
    let (volumes, id) = (scene.host.volumes(), VolumeId::random());
    volumes.make(&id, 64 << 20).await.unwrap();
    let root = inside(&scene, &id);
    std::fs::create_dir(root.join("top")).unwrap();
    let mut directory = std::fs::File::open(root.join("top")).unwrap();
    for _ in 0..5000 {
        rustix::fs::mkdirat(&directory, "d", Mode::RWXU).unwrap();
        rustix::fs::symlinkat("/etc", &directory, "link").unwrap();
        let next = rustix::fs::openat(&directory, "d", rustix::fs::OFlags::DIRECTORY, Mode::empty()).unwrap();
        directory = next.into();
    }
    drop(directory);
    assert_eq!(volumes.list(&id, &at("/top"), 64, 1000).await.unwrap().len(), 128);
    volumes.remove_entry(&id, &at("/top")).await.unwrap();
    assert!(volumes.list(&id, &at("/"), 1, 10).await.unwrap().is_empty());
    assert!(Path::new("/etc/passwd").exists());
    volumes.remove(&id).await.unwrap();
    scene.close().await;
}
