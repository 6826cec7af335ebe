//! Sandboxes that stand still: on request, when their time runs out, through a restart of the server, and until somebody wants them again.

use std::time::Duration;

use belljar_core::{CreateSandbox, ForkRequest, ForkSource, Service, SnapshotKind, TakeSnapshot};
use belljar_testkit::{block_on, run};
use belljar_types::{IsolationClass, OnTimeout, PauseKind, PausedMemory, ProcessInfo, ProcessSpec, Sandbox, SandboxState};

use crate::scene::{BOTH, CONTAINER, Scene, alone, among_others, code, container, of_class, until};

/// A process that counts for ever, once a tenth of a second, into a file.
fn counter() -> ProcessSpec {
    ProcessSpec::new(["sh", "-c", "i=0; while :; do i=$((i+1)); echo $i > /tmp/count; sleep 0.1; done"])
}

async fn count(service: &Service, scene: &Scene, sandbox: &Sandbox) -> u64 {
    let session = service.open(&scene.admin, &sandbox.id).await.unwrap();
    let printed = run(session.guest().as_ref(), &["cat", "/tmp/count"]).await;
    String::from_utf8(printed.stdout).unwrap().trim().parse().unwrap_or(0)
}

/// Starts to count, and returns when it does.
async fn begin_to_count(scene: &Scene, sandbox: &Sandbox) -> ProcessInfo {
    let session = scene.service.open(&scene.admin, &sandbox.id).await.unwrap();
    let process = session.start(&counter()).await.unwrap();
    until(|| async { count(&scene.service, scene, sandbox).await > 2 }).await;
    process
}

#[test]
fn processes_go_on_after_a_pause_and_a_restart_of_the_server() {
    block_on(async {
        let _turn = among_others().await;
        let mut scene = Scene::open(BOTH).await;
        for class in [IsolationClass::Container, IsolationClass::Gvisor] {
            let sandbox = scene.create(of_class(class)).await;
            let process = begin_to_count(&scene, &sandbox).await;

            let paused = scene.service.pause(&scene.admin, &sandbox.id, SnapshotKind::Memory).await.unwrap();
            assert_eq!(paused.state, SandboxState::Paused);
            let memory = if class == IsolationClass::Gvisor { PausedMemory::OnDisk } else { PausedMemory::Resident };
            assert_eq!(paused.pause.unwrap().memory, memory);
            let again = scene.service.pause(&scene.admin, &sandbox.id, SnapshotKind::Memory).await.unwrap();
            assert_eq!(again.pause, paused.pause, "a sandbox that stands still is left as it is");
            assert_eq!(code(scene.service.open(&scene.admin, &sandbox.id).await.map(drop)), "wrong_state");

            scene.restart(BOTH).await;
            assert_eq!(scene.show(&sandbox.id).await.state, SandboxState::Paused);
            let resumed = scene.service.resume(&scene.admin, &sandbox.id, None).await.unwrap();
            assert_eq!((resumed.state, resumed.pause), (SandboxState::Running, None));

            let before = count(&scene.service, &scene, &sandbox).await;
            until(|| async { count(&scene.service, &scene, &sandbox).await > before }).await;
            let session = scene.service.open(&scene.admin, &sandbox.id).await.unwrap();
            let known = session.processes().await.unwrap();
            assert!(known.iter().any(|known| known.id == process.id && known.pid == process.pid && known.exit.is_none()), "{known:?}");
            drop(session);
            scene.kill([&sandbox.id]).await;
        }
    });
}

#[test]
fn what_stands_by_is_the_same_run_afterwards_and_can_be_kept_and_forked_meanwhile() {
    block_on(async {
        let _turn = among_others().await;
        let mut scene = Scene::open(BOTH).await;
        for class in [IsolationClass::Container, IsolationClass::Gvisor] {
            let sandbox = scene.create(of_class(class)).await;
            begin_to_count(&scene, &sandbox).await;

            let paused = scene.service.pause(&scene.admin, &sandbox.id, PauseKind::Standby).await.unwrap();
            assert_eq!((paused.state, paused.pause.unwrap().memory), (SandboxState::Paused, PausedMemory::Resident), "{class}");
            let used = scene.service.usage(&scene.admin, &sandbox.id).await.unwrap().cpu_micros;
            tokio::time::sleep(Duration::from_millis(700)).await;
            assert_eq!(scene.service.usage(&scene.admin, &sandbox.id).await.unwrap().cpu_micros, used, "{class}: it uses no processor");

            let taken = scene.service.take_snapshot(&scene.admin, &sandbox.id, TakeSnapshot::default()).await.unwrap();
            let forks = scene.service.fork(&scene.admin, ForkSource::Snapshot(taken.id.as_str()), ForkRequest::default()).await.unwrap();
            let fork = forks.into_iter().next().unwrap().unwrap();
            let (with_memory, at_fork) = (taken.kind == SnapshotKind::Memory, count(&scene.service, &scene, &fork).await);
            assert!(at_fork > 2, "{class}: a fork has the files");
            assert_eq!(with_memory, class == IsolationClass::Gvisor);
            if with_memory {
                until(|| async { count(&scene.service, &scene, &fork).await > at_fork }).await;
            }
            scene.restart(BOTH).await;
            assert_eq!(scene.show(&sandbox.id).await.state, SandboxState::Paused, "{class}: it stands by as before");

            let resumed = scene.service.resume(&scene.admin, &sandbox.id, None).await.unwrap();
            assert_eq!((resumed.state, resumed.execution()), (SandboxState::Running, sandbox.execution()), "{class}: it never left");
            let before = count(&scene.service, &scene, &sandbox).await;
            until(|| async { count(&scene.service, &scene, &sandbox).await > before }).await;
            scene.service.remove_snapshot(&scene.admin, taken.id.as_str()).await.unwrap();
            // One that stands by ends like any other.
            scene.service.pause(&scene.admin, &sandbox.id, PauseKind::Standby).await.unwrap();
            scene.kill([&sandbox.id, &fork.id]).await;
        }
    });
}

#[test]
fn a_pause_without_memory_keeps_the_files() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(BOTH).await;
        for class in [IsolationClass::Container, IsolationClass::Gvisor] {
            let sandbox = scene.create(of_class(class)).await;
            let session = scene.service.open(&scene.admin, &sandbox.id).await.unwrap();
            run(session.guest().as_ref(), &["sh", "-c", "echo kept > ~/file"]).await;
            session.start(&counter()).await.unwrap();
            drop(session);
            let paused = scene.service.pause(&scene.admin, &sandbox.id, SnapshotKind::Filesystem).await.unwrap();
            assert_eq!(paused.pause.unwrap().memory, PausedMemory::Lost);
            scene.service.resume(&scene.admin, &sandbox.id, None).await.unwrap();
            let session = scene.service.open(&scene.admin, &sandbox.id).await.unwrap();
            assert_eq!(run(session.guest().as_ref(), &["sh", "-c", "cat ~/file"]).await.stdout, b"kept\n");
            assert!(session.processes().await.unwrap().iter().all(|process| process.tag.is_none() && process.exit.is_some()));
            drop(session);
            scene.kill([&sandbox.id]).await;
        }
    });
}

/// As after a pause whose last step failed: the engine says that it is paused, and the server that it runs.
#[test]
fn what_is_found_paused_although_it_should_run_is_kept() {
    block_on(async {
        let _turn = alone().await;
        let mut scene = Scene::open(BOTH).await;
        for (class, kind, memory) in [
            (IsolationClass::Container, PauseKind::Filesystem, PausedMemory::Lost),
            (IsolationClass::Container, PauseKind::Standby, PausedMemory::Resident),
            (IsolationClass::Gvisor, PauseKind::Filesystem, PausedMemory::Lost),
        ] {
            let sandbox = scene.create(of_class(class)).await;
            let session = scene.service.open(&scene.admin, &sandbox.id).await.unwrap();
            run(session.guest().as_ref(), &["sh", "-c", "echo kept > ~/file; sync"]).await;
            drop(session);
            let engine = scene.lab.second_runtime(class);
            engine.pause(&sandbox.id, kind).await.unwrap();
            drop(engine);
            scene.restart(BOTH).await;
            let found = scene.show(&sandbox.id).await;
            assert_eq!(
                (found.state, found.pause.map(|pause| pause.memory)),
                (SandboxState::Paused, Some(memory)),
                "{class} {kind:?}: {found:?}"
            );
            scene.service.resume(&scene.admin, &sandbox.id, None).await.unwrap();
            let session = scene.service.open(&scene.admin, &sandbox.id).await.unwrap();
            assert_eq!(run(session.guest().as_ref(), &["sh", "-c", "cat ~/file"]).await.stdout, b"kept\n", "{class} {kind:?}");
            drop(session);
            scene.kill([&sandbox.id]).await;
        }
    });
}

#[test]
fn a_lease_that_runs_out_pauses_and_fifty_who_want_it_resume_it_once() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let request =
            CreateSandbox { on_timeout: OnTimeout::Pause, auto_resume: true, lease: Some(Duration::from_millis(1500)), ..container() };
        let sandbox = scene.create(request).await;
        until(|| async { scene.show(&sandbox.id).await.state == SandboxState::Paused }).await;
        let opened = (0..50).map(|_| async { scene.service.open(&scene.admin, &sandbox.id).await.unwrap().hello().await.unwrap() });
        let answers = futures_util::future::join_all(opened).await;
        let runs: std::collections::BTreeSet<_> = answers.into_iter().map(|answer| answer.execution).collect();
        assert_eq!(runs.len(), 1, "{runs:?}");
        let running = scene.show(&sandbox.id).await;
        assert_eq!(running.state, SandboxState::Running);
        assert!(running.expires_at > sandbox.expires_at, "whoever resumed it has time to set a lease");
        scene.kill([&sandbox.id]).await;
    });
}

#[test]
fn a_lease_that_runs_out_keeps_the_files_alone_where_that_was_asked_for() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let request = CreateSandbox { on_timeout: OnTimeout::PauseFiles, lease: Some(Duration::from_millis(1500)), ..container() };
        let sandbox = scene.create(request).await;
        until(|| async { scene.show(&sandbox.id).await.state == SandboxState::Paused }).await;
        assert_eq!(scene.show(&sandbox.id).await.pause.unwrap().memory, PausedMemory::Lost);
        scene.kill([&sandbox.id]).await;
    });
}

#[test]
fn a_paused_sandbox_can_be_killed_and_a_lease_does_not_run_meanwhile() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let sandbox = scene.create(CreateSandbox { lease: Some(Duration::from_millis(1500)), ..container() }).await;
        scene.service.pause(&scene.admin, &sandbox.id, SnapshotKind::Memory).await.unwrap();
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(scene.show(&sandbox.id).await.state, SandboxState::Paused);
        let gone = scene.service.kill(&scene.admin, &sandbox.id).await.unwrap();
        assert_eq!(gone.state, SandboxState::Stopped);
        assert_eq!(code(scene.service.resume(&scene.admin, &sandbox.id, None).await), "sandbox_ended");
        assert!(!scene.is_on_the_host(IsolationClass::Container, &sandbox.id).await);
    });
}
