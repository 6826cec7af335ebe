//! Volumes on real engines: what one sandbox wrote another reads, nobody gets what is another's, and nothing in a volume leads out of it.

use std::collections::BTreeSet;

use belljar_core::{
    CopyVolume, CoreError, CreateSandbox, CreateVolume, ForkRequest, ForkSource, MountRequest, Service, SnapshotKind, SweepOptions,
    TakeSnapshot,
};
use belljar_ports::{Store as _, VolumeStore, Volumes};
use belljar_testkit::{Finished, block_on, run, sh};
use belljar_types::{IsolationClass, MountMode, Sandbox, SandboxState, Volume, VolumeId, VolumeState};

use crate::scene::{BOTH, CONTAINER, ONLY_LOOK, ORPHANS, Scene, alone, among_others, code, of_class, settings, until};

const CLASSES: [IsolationClass; 2] = [IsolationClass::Container, IsolationClass::Gvisor];

fn named(name: &str, class: IsolationClass) -> String {
    format!("{name}-{class}")
}

async fn volume(scene: &Scene, name: &str, megabytes: u64) -> Volume {
    let request = CreateVolume { name: name.parse().unwrap(), size_bytes: Some(megabytes << 20), bucket: None };
    scene.service.create_volume(&scene.admin, request).await.unwrap_or_else(|error| panic!("{}", belljar_core::chain(&error)))
}

fn with(class: IsolationClass, volume: &str, mode: MountMode) -> CreateSandbox {
    let mount = MountRequest { volume: volume.to_owned(), path: "/mnt/data".parse().unwrap(), mode };
    CreateSandbox { volumes: vec![mount], ..of_class(class) }
}

async fn inside(service: &Service, scene: &Scene, sandbox: &Sandbox, script: &str) -> Finished {
    let session = service.open(&scene.admin, &sandbox.id).await.unwrap();
    sh(session.guest().as_ref(), script).await
}

async fn says(scene: &Scene, sandbox: &Sandbox, script: &str) -> String {
    let done = inside(&scene.service, scene, sandbox, script).await;
    assert_eq!(done.code(), 0, "{script}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

async fn remove(scene: &Scene, names: &[&str]) {
    for name in names {
        scene.service.remove_volume(&scene.admin, name).await.unwrap();
    }
}

#[test]
fn what_one_sandbox_wrote_another_reads_whatever_its_class() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(BOTH).await;
        volume(&scene, "data", 64).await;
        for (writer, reader) in [CLASSES, [CLASSES[1], CLASSES[0]]].map(|pair| (pair[0], pair[1])) {
            let first = scene.create(with(writer, "data", MountMode::ReadWrite)).await;
            assert_eq!(says(&scene, &first, "id -u; ls -A /mnt/data").await.lines().next(), Some("1000"), "the ordinary user writes");
            says(&scene, &first, "mkdir -p /mnt/data/a && echo hello > /mnt/data/a/file && chmod 640 /mnt/data/a/file").await;
            scene.kill([&first.id]).await;
            let second = scene.create(with(reader, "data", MountMode::ReadWrite)).await;
            assert_eq!(says(&scene, &second, "cat /mnt/data/a/file; stat -c '%a %u %g' /mnt/data/a/file").await, "hello\n640 1000 1000\n");
            says(&scene, &second, "rm -r /mnt/data/a; mv /mnt/data /mnt/other 2>/dev/null && exit 1; ls -A /mnt/data").await;
            scene.kill([&second.id]).await;
        }
        remove(&scene, &["data"]).await;
    });
}

#[test]
fn a_writer_has_its_volume_alone_and_readers_and_sharers_have_it_together() {
    block_on(async {
        // Whoever starts beside it would let a sandbox go on that is held still here.
        let _turn = alone().await;
        let scene = Scene::open(BOTH).await;
        for class in CLASSES {
            let name = named("shared", class);
            volume(&scene, &name, 16).await;
            let writer = scene.create(with(class, &name, MountMode::ReadWrite)).await;
            let refused = scene.service.create(&scene.admin, with(class, &name, MountMode::ReadOnly)).await;
            let words = belljar_core::chain(refused.as_ref().unwrap_err());
            assert_eq!(code(refused), "volume_in_use");
            assert!(words.contains(writer.id.as_str()), "{words}");
            let kept = scene.service.remove_volume(&scene.admin, &name).await;
            assert!(belljar_core::chain(kept.as_ref().unwrap_err()).contains(writer.id.as_str()));
            assert_eq!(code(kept), "volume_in_use");
            let forked = scene.service.fork(&scene.admin, ForkSource::Sandbox(&writer.id), ForkRequest::default()).await;
            assert_eq!(code(forked), "volume_in_use");
            says(&scene, &writer, "echo one > /mnt/data/file").await;
            let status = scene.service.volume_status(&scene.admin, &name).await.unwrap();
            assert_eq!(status.holders.iter().map(|holder| &holder.sandbox).collect::<Vec<_>>(), [&writer.id]);
            scene.kill([&writer.id]).await;

            let (one, two) =
                (scene.create(with(class, &name, MountMode::Shared)).await, scene.create(with(class, &name, MountMode::Shared)).await);
            let reader = scene.create(with(class, &name, MountMode::ReadOnly)).await;
            says(&scene, &one, "echo two > /mnt/data/file; echo mine > /mnt/data/one").await;
            assert_eq!(says(&scene, &two, "cat /mnt/data/file; echo mine > /mnt/data/two; ls /mnt/data").await, "two\nfile\none\ntwo\n");
            assert_eq!(says(&scene, &reader, "cat /mnt/data/file; ls /mnt/data").await, "two\nfile\none\ntwo\n");
            for attempt in ["echo x > /mnt/data/file", "rm /mnt/data/one", "mkdir /mnt/data/d", "chmod 777 /mnt/data/file"] {
                for who in ["", "sudo "] {
                    let done = inside(&scene.service, &scene, &reader, &format!("{who}sh -c '{attempt}'")).await;
                    assert_ne!(done.code(), 0, "{class}: {who}{attempt} was done on a read-only volume");
                }
            }
            let forks = scene.service.fork(&scene.admin, ForkSource::Sandbox(&one.id), ForkRequest::default()).await.unwrap();
            let fork = forks.into_iter().next().unwrap().unwrap_or_else(|error| panic!("{}", belljar_core::chain(&error)));
            assert_eq!(says(&scene, &fork, "cat /mnt/data/file").await, "two\n", "a fork has what its origin shares");
            scene.kill([&one.id, &two.id, &reader.id, &fork.id]).await;
            remove(&scene, &[&name]).await;
        }
    });
}

#[test]
fn nobody_writes_more_than_the_size_of_a_volume() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(BOTH).await;
        for class in CLASSES {
            let name = named("small", class);
            volume(&scene, &name, 8).await;
            let sandbox = scene.create(with(class, &name, MountMode::ReadWrite)).await;
            for who in ["", "sudo "] {
                let script =
                    format!("{who}sh -c 'head -c 33554432 /dev/urandom > /mnt/data/big; r=$?; sync; stat -c %s /mnt/data/big; exit $r'");
                let done = inside(&scene.service, &scene, &sandbox, &script).await;
                assert_ne!(done.code(), 0, "{class}: 32 MiB went into a volume of 8 MiB");
                let size: u64 = String::from_utf8_lossy(&done.stdout).trim().parse().unwrap();
                assert!(size <= 8 << 20, "{class}: {size} bytes are in a volume of 8 MiB");
                says(&scene, &sandbox, "sudo rm -f /mnt/data/big && sync").await;
            }
            // Its own disk is another matter.
            says(&scene, &sandbox, "head -c 16777216 /dev/zero > /tmp/big").await;
            scene.kill([&sandbox.id]).await;
            remove(&scene, &[&name]).await;
        }
    });
}

#[test]
fn a_clone_goes_its_own_way_and_a_kept_state_stays() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(BOTH).await;
        volume(&scene, "origin", 16).await;
        let writer = scene.create(with(CLASSES[0], "origin", MountMode::ReadWrite)).await;
        says(&scene, &writer, "echo before > /mnt/data/file").await;
        let copy = |name: &str, read_only| CopyVolume { name: name.parse().unwrap(), size_bytes: None, read_only };
        let clone = scene.service.copy_volume(&scene.admin, "origin", copy("clone", false)).await.unwrap();
        let kept = scene.service.copy_volume(&scene.admin, "origin", copy("kept", true)).await.unwrap();
        assert_eq!((clone.size_bytes, clone.read_only, kept.read_only), (16 << 20, false, true));
        assert_eq!(code(scene.service.copy_volume(&scene.admin, "origin", copy("clone", false)).await), "exists");
        says(&scene, &writer, "echo after > /mnt/data/file").await;
        for class in CLASSES {
            let cloned = scene.create(with(class, "clone", MountMode::ReadWrite)).await;
            assert_eq!(says(&scene, &cloned, "cat /mnt/data/file; echo mine >> /mnt/data/log").await, "before\n");
            scene.kill([&cloned.id]).await;
            assert_eq!(code(scene.service.create(&scene.admin, with(class, "kept", MountMode::ReadWrite)).await), "volume_read_only");
            let reader = scene.create(with(class, "kept", MountMode::ReadOnly)).await;
            assert_eq!(says(&scene, &reader, "cat /mnt/data/file").await, "before\n");
            scene.kill([&reader.id]).await;
        }
        assert_eq!(says(&scene, &writer, "cat /mnt/data/file; ls /mnt/data").await, "after\nfile\n");
        scene.kill([&writer.id]).await;
        // What a clone shares lives on without its origin.
        remove(&scene, &["origin"]).await;
        let cloned = scene.create(with(CLASSES[0], "clone", MountMode::ReadWrite)).await;
        assert_eq!(says(&scene, &cloned, "cat /mnt/data/file; wc -l < /mnt/data/log").await, "before\n2\n");
        scene.kill([&cloned.id]).await;
        let again = scene.service.copy_volume(&scene.admin, "kept", copy("again", false)).await.unwrap();
        assert!(!again.read_only);
        remove(&scene, &["clone", "kept", "again"]).await;
    });
}

#[test]
fn a_volume_stays_with_its_sandbox_through_pauses_snapshots_and_a_new_server() {
    block_on(async {
        // Whoever starts beside it would let a sandbox go on that is held still here.
        let _turn = alone().await;
        let mut scene = Scene::open(BOTH).await;
        for class in CLASSES {
            let name = named("lasting", class);
            volume(&scene, &name, 16).await;
            let sandbox = scene.create(with(class, &name, MountMode::ReadWrite)).await;
            says(&scene, &sandbox, "echo 1 >> /mnt/data/log").await;
            for keep in [SnapshotKind::Memory, SnapshotKind::Filesystem] {
                scene.service.pause(&scene.admin, &sandbox.id, keep).await.unwrap();
                assert_eq!(code(scene.service.create(&scene.admin, with(class, &name, MountMode::ReadWrite)).await), "volume_in_use");
                scene.restart(BOTH).await;
                assert_eq!(code(scene.service.remove_volume(&scene.admin, &name).await), "volume_in_use");
                let resumed = scene.service.resume(&scene.admin, &sandbox.id, None).await;
                assert_eq!(
                    resumed.unwrap_or_else(|error| panic!("{class} {keep:?}: {}", belljar_core::chain(&error))).state,
                    SandboxState::Running
                );
                says(&scene, &sandbox, "echo 1 >> /mnt/data/log").await;
            }
            scene.restart(BOTH).await;
            assert_eq!(says(&scene, &sandbox, "wc -l < /mnt/data/log").await, "3\n");

            // A snapshot keeps the mounts; whoever is made from it gets the volume as it is then, when it is free.
            let taking = TakeSnapshot { kind: Some(SnapshotKind::Filesystem), ..TakeSnapshot::default() };
            let snapshot = scene.service.take_snapshot(&scene.admin, &sandbox.id, taking).await.unwrap();
            says(&scene, &sandbox, "echo 1 >> /mnt/data/log").await;
            let from = || CreateSandbox { snapshot: Some(snapshot.id.to_string()), ..of_class(class) };
            assert_eq!(code(scene.service.create(&scene.admin, from()).await), "volume_in_use");
            scene.kill([&sandbox.id]).await;
            let made = scene.create(from()).await;
            assert_eq!(says(&scene, &made, "wc -l < /mnt/data/log").await, "4\n");
            scene.kill([&made.id]).await;
            scene.service.remove_snapshot(&scene.admin, snapshot.id.as_str()).await.unwrap();
            remove(&scene, &[&name]).await;
        }
    });
}

/// A path through a link would put the volume, or the directory for it, somewhere else than asked.
#[test]
fn a_volume_is_not_shown_behind_a_link_or_on_another() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(BOTH).await;
        let (one, two) = (volume(&scene, "one", 4).await, volume(&scene, "two", 4).await);
        let at = |volume: &Volume, path: &str| MountRequest {
            volume: volume.id.to_string(),
            path: path.parse().unwrap(),
            mode: MountMode::ReadWrite,
        };
        for class in CLASSES {
            // In the template, /bin is a link to usr/bin and /etc/hostname is a file.
            for path in ["/bin/data", "/etc/hostname", "/etc/hostname/data"] {
                let asked = CreateSandbox { volumes: vec![at(&one, path)], ..of_class(class) };
                let refused = scene.service.create(&scene.admin, asked).await;
                let error = refused.err().unwrap_or_else(|| panic!("{class}: {path}"));
                assert_eq!(error.invalid().map(|invalid| invalid.field.as_str()), Some("volumes.path"), "{class} {path}: {error}");
            }
        }
        let refuse = async |volumes: Vec<MountRequest>| -> CoreError {
            scene.service.create(&scene.admin, CreateSandbox { volumes, ..of_class(CLASSES[0]) }).await.unwrap_err()
        };
        assert_eq!(refuse(vec![at(&one, "/data"), at(&two, "/data/x")]).await.code(), "invalid");
        assert_eq!(refuse(vec![at(&one, "/data"), at(&one, "/more")]).await.code(), "invalid");
        assert_eq!(refuse(vec![MountRequest { volume: "absent".to_owned(), ..at(&one, "/data") }]).await.code(), "volume_not_found");
        let stranger = scene.caller("stranger", &[belljar_types::Scope::Use]).await;
        let theirs = scene.service.create(&stranger, CreateSandbox { volumes: vec![at(&one, "/data")], ..of_class(CLASSES[0]) }).await;
        assert_eq!(code(theirs), "volume_not_found");

        let both = scene.create(CreateSandbox { volumes: vec![at(&one, "/data/one"), at(&two, "/srv/two")], ..of_class(CLASSES[0]) }).await;
        says(&scene, &both, "echo 1 > /data/one/f; echo 2 > /srv/two/f; test -d /data -a ! -e /data/f").await;
        scene.kill([&both.id]).await;
        remove(&scene, &["one", "two"]).await;
    });
}

/// Subvolumes have limits of their own: whoever could make one in a volume had as much disk as they like.
#[test]
fn root_in_a_sandbox_cannot_get_around_the_size_of_a_volume() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let made = volume(&scene, "tight", 4).await;
        // The attack works for whoever is not in a sandbox.
        let directory = scene.lab.host.pool_directory().join("volumes").join(made.id.as_str());
        let open = belljar_linux::btrfs::open_directory(&directory).unwrap();
        belljar_linux::btrfs::create_subvolume(&open, std::ffi::OsStr::new("inner")).unwrap();
        belljar_linux::btrfs::delete_subvolume(&open, std::ffi::OsStr::new("inner")).unwrap();
        drop(open);
        let sandbox = scene.create(with(IsolationClass::Container, "tight", MountMode::ReadWrite)).await;
        let session = scene.service.open(&scene.admin, &sandbox.id).await.unwrap();
        let attack = "import fcntl,os\nd=os.open('/mnt/data',os.O_RDONLY)\nfcntl.ioctl(d,0x5000940e,bytearray(b'\\0'*8+b'inner'.ljust(4088,b'\\0')))";
        let done = run(session.guest().as_ref(), &["sudo", "python3", "-c", attack]).await;
        assert_ne!(done.code(), 0);
        assert!(String::from_utf8_lossy(&done.stderr).contains("OSError"), "{}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(says(&scene, &sandbox, "ls -A /mnt/data").await, "");
        // Neither devices nor set-user-ID programs mean anything in a volume.
        says(&scene, &sandbox, "cp /bin/id /mnt/data/id; sudo chown root /mnt/data/id; sudo chmod 4755 /mnt/data/id").await;
        assert_eq!(says(&scene, &sandbox, "/mnt/data/id -u").await, "1000\n");
        assert_ne!(inside(&scene.service, &scene, &sandbox, "sudo mknod /mnt/data/null c 1 3").await.code(), 0);
        drop(session);
        scene.kill([&sandbox.id]).await;
        remove(&scene, &["tight"]).await;
    });
}

#[test]
fn a_server_that_comes_back_finishes_or_undoes_what_was_half_done() {
    block_on(async {
        let _turn = alone().await;
        let config = belljar_core::ServiceConfig { orphan_grace: std::time::Duration::ZERO, ..settings() };
        let mut scene = Scene::with(CONTAINER, config).await;
        let (ready, host) = (volume(&scene, "ready", 4).await, scene.lab.host.volumes());
        let epoch = scene.store.begin_epoch().await.unwrap();
        let row = |name: &str| Volume { id: VolumeId::random(), name: name.parse().unwrap(), state: VolumeState::Making, ..ready.clone() };

        // Made, and not yet recorded; entered, and not yet made; being removed; and one that nobody knows of.
        let (made, not_made, going, orphan) = (row("made"), row("not_made"), row("going"), VolumeId::random());
        for entered in [&made, &not_made, &going] {
            scene.store.enter_volume(epoch, entered).await.unwrap();
        }
        host.copy(&ready.id, &made.id, 4 << 20, false).await.unwrap();
        for id in [&going.id, &orphan] {
            host.make(id, 4 << 20).await.unwrap();
        }
        let removing = Volume { state: VolumeState::Removing, ..going.clone() };
        scene.store.record_volume(epoch, VolumeState::Making, &removing).await.unwrap();

        let before = scene.restart(CONTAINER).await;
        let seen = scene.service.volumes(&scene.admin, None, 10).await.unwrap().volumes;
        assert_eq!(seen.iter().map(|volume| volume.name.as_str()).collect::<Vec<_>>(), ["made", "ready"]);
        assert_eq!(scene.store.all_volumes().await.unwrap().0.len(), 2, "the rest is forgotten");
        let on_the_host = async || host.inventory().await.unwrap().into_iter().collect::<BTreeSet<_>>();
        let ids = BTreeSet::from([ready.id.clone(), made.id.clone()]);
        let and_the_orphan: BTreeSet<_> = ids.iter().chain([&orphan]).cloned().collect();
        until(|| async { on_the_host().await == and_the_orphan }).await;
        for (options, left) in
            [(ONLY_LOOK, &and_the_orphan), (SweepOptions { orphans: true, ..ONLY_LOOK }, &and_the_orphan), (ORPHANS, &ids)]
        {
            let cleaned = scene.service.sweep(&scene.admin, options).await.unwrap();
            assert_eq!(cleaned.orphaned_volumes, std::slice::from_ref(&orphan), "{options:?}");
            assert_eq!(on_the_host().await, *left, "{options:?}");
        }
        let late = CreateVolume { name: "late".parse().unwrap(), size_bytes: None, bucket: None };
        assert_eq!(code(before.create_volume(&scene.admin, late).await), "stopping", "a server that was thought dead makes nothing");
        let sandbox = scene.create(with(IsolationClass::Container, "made", MountMode::ReadWrite)).await;
        scene.kill([&sandbox.id]).await;
        remove(&scene, &["made", "ready"]).await;
        assert!(host.inventory().await.unwrap().is_empty());

        let query = belljar_core::AuditQuery { limit: 1000, ..belljar_core::AuditQuery::default() };
        let log = scene.service.audit(&scene.admin, None, &query, std::time::Duration::ZERO).await.unwrap();
        let told = format!("{:?}", log.records);
        assert!(told.contains("create_volume") && told.contains("remove_volume"), "{told}");
    });
}
