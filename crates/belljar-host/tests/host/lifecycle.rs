//! Reserving, committing, releasing: what is handed out, what is refused, and that nothing is left.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use belljar_host::{Host, HostError, RecordState};
use belljar_types::{IsolationClass, SandboxId};

use crate::scene::{Scene, config, digest, spec};

#[tokio::test(flavor = "multi_thread")]
async fn a_reservation_has_all_that_a_sandbox_needs_and_its_release_leaves_nothing() {
    let scene = Scene::new().await;
    let before = scene.counts().await;
    let spec = spec();
    let reserved = scene.host.reserve(IsolationClass::Container, &spec).await.unwrap();
    assert!(reserved.upper.is_dir() && reserved.work.is_dir() && reserved.home.is_dir());
    assert_eq!(reserved.upper.metadata().unwrap().permissions().mode() & 0o7777, 0o755);
    assert_eq!(reserved.home.metadata().unwrap().permissions().mode() & 0o7777, 0o700);
    assert_eq!(reserved.layers, [scene.host.layer_directory(&digest('b')), scene.host.layer_directory(&digest('a'))]);
    assert!(reserved.slot.netns.exists());
    let record = scene.host.record(&spec.id).await.unwrap().unwrap();
    assert_eq!((record.state, record.slot), (RecordState::Making, reserved.slot.number));
    assert_eq!(record.token, reserved.record.token);
    let file = reserved.home.join("record.json");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o7777, 0o600);

    scene.host.commit(&spec.id).await.unwrap();
    scene.host.set_engine(&spec.id, serde_json::json!({"pid": 7})).await.unwrap();
    let record = scene.host.record(&spec.id).await.unwrap().unwrap();
    assert_eq!(record.state, RecordState::Running);
    assert_eq!(record.engine["pid"], 7);
    assert_eq!(scene.host.records(IsolationClass::Container).await.unwrap().len(), 1);
    assert!(scene.host.records(IsolationClass::Gvisor).await.unwrap().is_empty());

    scene.host.release(&spec.id).await.unwrap();
    scene.host.release(&spec.id).await.unwrap();
    assert!(scene.host.record(&spec.id).await.unwrap().is_none());
    assert_eq!(scene.counts().await, before);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_refused_and_changes_nothing() {
    let scene = Scene::new().await;
    let first = spec();
    scene.host.reserve(IsolationClass::Container, &first).await.unwrap();
    let before = scene.counts().await;

    let again = scene.host.reserve(IsolationClass::Gvisor, &first).await.unwrap_err();
    assert_eq!(again.to_string(), format!("sandbox {} exists already", first.id));
    let mut missing = spec();
    missing.layers = vec![digest('c')];
    let missing = scene.host.reserve(IsolationClass::Container, &missing).await.unwrap_err();
    assert!(missing.to_string().contains("is not in the pool"), "{missing}");
    let mut open = spec();
    open.network = belljar_types::Network::Open;
    let open = scene.host.reserve(IsolationClass::Container, &open).await.unwrap_err();
    assert!(matches!(open, HostError::OpenNetworkDisabled), "{open}");
    let mut tiny = spec();
    tiny.limits.memory_bytes = 1;
    assert!(matches!(scene.host.reserve(IsolationClass::Container, &tiny).await, Err(HostError::Invalid(_))));
    assert!(matches!(scene.host.commit(&SandboxId::random()).await, Err(HostError::NotFound { .. })));
    scene.host.release(&SandboxId::random()).await.unwrap();
    assert!(matches!(scene.host.close().await, Err(HostError::InUse { sandboxes: 1 })));

    assert_eq!(scene.counts().await, before);
    scene.host.release(&first.id).await.unwrap();
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_process_owns_a_data_directory() {
    let scene = Scene::new().await;
    let second = Host::open(config(&scene.directory)).await.err().unwrap();
    assert!(second.to_string().contains("in use by another belljar process"), "{second}");
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_opening_finds_what_the_first_left() {
    let scene = Scene::new().await;
    let directory = scene.directory.clone();
    let spec = spec();
    scene.host.reserve(IsolationClass::Container, &spec).await.unwrap();
    scene.host.commit(&spec.id).await.unwrap();
    let token = scene.host.record(&spec.id).await.unwrap().unwrap().token;
    let before = scene.counts().await;
    let Scene { host, _sweep, _temporary, .. } = scene;
    let weak = std::sync::Arc::downgrade(&host);
    drop(host);
    assert!(weak.upgrade().is_none());

    let host = Host::open(config(&directory)).await.unwrap();
    let scene = Scene { host, directory, _sweep, _temporary };
    let record = scene.host.record(&spec.id).await.unwrap().unwrap();
    assert_eq!((record.state, record.token), (RecordState::Running, token));
    let after = scene.counts().await;
    for kind in ["homes", "subvolumes", "cgroups", "quotas"] {
        assert_eq!(after[kind], before[kind], "{kind}");
    }
    let other = scene.host.reserve(IsolationClass::Container, &crate::scene::spec()).await.unwrap();
    assert_ne!(other.slot.number, record.slot);
    scene.host.release(&other.record.id).await.unwrap();
    scene.host.release(&spec.id).await.unwrap();
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_quota_stops_a_writer_and_counts_what_was_written() {
    let scene = Scene::new().await;
    let mut spec = spec();
    spec.limits.disk_bytes = 16 << 20;
    let reserved = scene.host.reserve(IsolationClass::Container, &spec).await.unwrap();
    let mut file = std::fs::File::create(reserved.upper.join("big")).unwrap();
    let chunk = vec![7u8; 1 << 20];
    let mut written = 0;
    let error = loop {
        match file.write_all(&chunk).and_then(|()| file.sync_data()) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 64, "the limit of 16 MiB did not stop the writer");
    };
    assert_eq!(error.kind(), std::io::ErrorKind::QuotaExceeded, "{error}");
    assert!(written >= 10, "stopped after {written} MiB already");
    let used = scene.host.usage(&spec.id).await.unwrap().disk_bytes;
    assert!((8 << 20..=16 << 20).contains(&used), "{used}");
    drop(file);
    scene.host.release(&spec.id).await.unwrap();
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn release_kills_what_runs_in_the_sandbox() {
    let scene = Scene::new().await;
    let before = scene.counts().await;
    let spec = spec();
    let reserved = scene.host.reserve(IsolationClass::Container, &spec).await.unwrap();
    let attach: String = reserved.cgroup.procs_paths().iter().map(|path| format!("echo 0 > {} && ", path.display())).collect();
    let script = format!("{attach} trap '' TERM INT HUP; sleep 1000 & sleep 1000 & echo started; wait");
    let mut child = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 8]).unwrap();
    assert!(reserved.cgroup.usage().unwrap().pids >= 3);
    let reaper = std::thread::spawn(move || child.wait().unwrap());
    scene.host.release(&spec.id).await.unwrap();
    assert!(!reaper.join().unwrap().success());
    assert_eq!(scene.counts().await, before);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_reservations_leave_the_counts_as_they_were() {
    let scene = Scene::new().await;
    let before = scene.counts().await;
    for _ in 0..25 {
        let round: Vec<_> = (0..4)
            .map(|_| {
                let host = scene.host.clone();
                tokio::spawn(async move {
                    let spec = spec();
                    let reserved = host.reserve(IsolationClass::Container, &spec).await.unwrap();
                    std::fs::write(reserved.upper.join("file"), b"something").unwrap();
                    host.commit(&spec.id).await.unwrap();
                    host.release(&spec.id).await.unwrap();
                    reserved.slot.number
                })
            })
            .collect();
        for task in round {
            task.await.unwrap();
        }
    }
    assert_eq!(scene.counts().await, before);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_printed_of_a_reservation_shows_its_token() {
    let scene = Scene::new().await;
    let spec = spec();
    let reserved = scene.host.reserve(IsolationClass::Container, &spec).await.unwrap();
    let hex: String = reserved.record.token.reveal().iter().map(|byte| format!("{byte:02x}")).collect();
    let printed = format!("{reserved:?} {:#?}", scene.host.record(&spec.id).await.unwrap());
    assert!(printed.contains("token: ***") && !printed.contains(&hex), "{printed}");
    scene.host.release(&spec.id).await.unwrap();
    scene.close().await;
}
