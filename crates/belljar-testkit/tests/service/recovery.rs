//! A server comes back: what ran goes on, what was half done is finished or undone, what is gone is told, what nobody knows is removed.

use std::sync::Arc;
use std::time::Duration;

use belljar_core::{CoreError, CreateSandbox, ErrorClass, PartialLimits, ServiceConfig};
use belljar_ports::{Reserved, Store};
use belljar_testkit::{block_on, path, run, sh};
use belljar_types::{
    EndCause, Epoch, IsolationClass, Offsets, OutputEvent, Overflow, ProcessSpec, Sandbox, SandboxEnd, SandboxSpec, SandboxState, Timestamp,
};
use bytes::Bytes;
use futures_util::StreamExt;

use crate::scene::{BOTH, CONTAINER, Scene, alone, among_others, code, container, of_class, settings, until};

async fn a_process_goes_on(class: IsolationClass) {
    let _turn = among_others().await;
    let mut scene = Scene::open(&[class]).await;
    let made = scene.create(of_class(class)).await;
    let session = scene.service.open(&scene.admin, &made.id).await.unwrap();
    let mut counter = ProcessSpec::new(["/bin/sh", "-c", "i=0; while read line; do echo $i $line; i=$((i+1)); done"]);
    counter.stdin = true;
    counter.spool.overflow = Overflow::Slow;
    let (_, mut stream) = session.start_attached(&counter).await.unwrap();
    session.write_stdin(&counter.id, 0, Bytes::from_static(b"a\nb\n")).await.unwrap();
    let mut seen = Vec::new();
    read(&mut stream, &mut seen, 8).await;
    assert_eq!(seen, b"0 a\n1 b\n");
    drop((session, stream));

    drop(scene.restart(&[class]).await);
    assert_eq!(scene.show(&made.id).await, made, "nothing about it has changed");
    assert_eq!(scene.service.statistics().adopted, 1);
    let session = scene.service.open(&scene.admin, &made.id).await.unwrap();
    // The end of what was sent before is sent again, as a client does that does not know what arrived.
    session.write_stdin(&counter.id, 2, Bytes::from_static(b"b\nc\n")).await.unwrap();
    let mut stream = session.attach(&counter.id, Offsets { stdout: 4, stderr: 0 }).await.unwrap();
    let mut rest = Vec::new();
    read(&mut stream, &mut rest, 8).await;
    assert_eq!(rest, b"1 b\n2 c\n", "from the byte where it was, and nothing twice");
    let started_again = session.start(&counter).await.unwrap();
    assert!(started_again.exit.is_none());
    session.close_stdin(&counter.id).await.unwrap();
    assert!(session.wait(&counter.id, Duration::from_secs(60)).await.unwrap().is_some());
    scene.kill([&made.id]).await;
    assert!(!scene.is_on_the_host(class, &made.id).await);
}

async fn read(stream: &mut belljar_core::OutputStream, into: &mut Vec<u8>, bytes: usize) {
    while into.len() < bytes {
        match stream.next().await.unwrap().unwrap() {
            OutputEvent::Data { bytes, .. } => into.extend_from_slice(&bytes),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_process_in_a_container_goes_on_at_the_byte_where_it_was() {
    block_on(a_process_goes_on(IsolationClass::Container));
}

#[test]
fn a_process_in_a_gvisor_sandbox_goes_on_at_the_byte_where_it_was() {
    block_on(a_process_goes_on(IsolationClass::Gvisor));
}

fn kill_behind_its_back(scene: &Scene, sandbox: &Sandbox) {
    for pid in scene.lab.host_pids(&sandbox.id) {
        std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    }
}

#[test]
fn a_sandbox_killed_behind_the_servers_back_is_told_with_its_cause() {
    block_on(async {
        let _turn = among_others().await;
        let mut scene = Scene::open(CONTAINER).await;
        let (watched, unwatched) = tokio::join!(scene.container(), scene.container());
        kill_behind_its_back(&scene, &watched);
        let gone = scene.ended(&watched.id).await;
        assert_eq!((gone.state, gone.end.as_ref().unwrap().cause), (SandboxState::Stopped, EndCause::Exited));

        // The store says that it runs, as when it was killed while no server was there.
        let epoch = scene.store.begin_epoch().await.unwrap();
        kill_behind_its_back(&scene, &unwatched);
        until(|| async { scene.lab.host_pids(&unwatched.id).is_empty() }).await;
        let stored = scene.store.sandbox(&scene.admin.project, &unwatched.id).await.unwrap().unwrap();
        assert_eq!(stored.state, SandboxState::Running, "epoch {epoch:?} has fenced the server that saw it");
        drop(scene.restart(CONTAINER).await);
        let gone = scene.show(&unwatched.id).await;
        assert_eq!((gone.state, gone.end.as_ref().unwrap().cause), (SandboxState::Stopped, EndCause::Exited));
        assert!(!scene.is_on_the_host(IsolationClass::Container, &unwatched.id).await);
    });
}

/// What a server leaves that died right after it had entered a sandbox like this one.
async fn reserve(scene: &Scene, epoch: Epoch, like: &Sandbox) -> Sandbox {
    let spec = scene.lab.spec();
    let half = Sandbox { id: spec.id.clone(), spec, state: SandboxState::Creating, started_at: None, ..like.clone() };
    assert_eq!(scene.store.reserve(epoch, &half, None).await.unwrap(), Reserved::New);
    half
}

#[test]
fn what_was_half_made_is_undone_or_finished() {
    block_on(async {
        let _turn = among_others().await;
        let mut scene = Scene::open(CONTAINER).await;
        let model = scene.container().await;
        let engine = scene.lab.runtime(IsolationClass::Container);
        let epoch = scene.store.begin_epoch().await.unwrap();
        let nothing = reserve(&scene, epoch, &model).await;
        let remains = reserve(&scene, epoch, &model).await;
        drop(scene.lab.host.reserve(IsolationClass::Container, &remains.spec).await.unwrap());
        let whole = reserve(&scene, epoch, &model).await;
        engine.create(&whole.spec).await.unwrap();
        let other_run = reserve(&scene, epoch, &model).await;
        engine.create(&SandboxSpec { execution: scene.lab.spec().execution, ..other_run.spec.clone() }).await.unwrap();

        drop(scene.restart(CONTAINER).await);
        for undone in [&nothing, &remains, &other_run] {
            let shown = scene.show(&undone.id).await;
            assert_eq!((shown.state, shown.end.as_ref().unwrap().cause), (SandboxState::Failed, EndCause::NotMade));
            assert!(!scene.is_on_the_host(IsolationClass::Container, &undone.id).await);
        }
        let finished = scene.show(&whole.id).await;
        assert_eq!(finished.state, SandboxState::Running);
        assert!(finished.started_at.is_some());
        let session = scene.service.open(&scene.admin, &whole.id).await.unwrap();
        assert_eq!(run(&**session.guest(), &["echo", "alive"]).await.text(), "alive");
        scene.kill([&whole.id, &model.id]).await;
        assert_eq!(scene.service.statistics().ended["not-made"], 3);
    });
}

#[test]
fn what_was_being_ended_is_ended() {
    block_on(async {
        let _turn = among_others().await;
        let mut scene = Scene::open(CONTAINER).await;
        let made = scene.container().await;
        let epoch = scene.store.begin_epoch().await.unwrap();
        let end = SandboxEnd { cause: EndCause::LeaseExpired, detail: "its lease ran out".to_owned(), at: Timestamp::now() };
        let stopping = Sandbox { state: SandboxState::Stopping, end: Some(end.clone()), ..(*made).clone() };
        scene.store.record(epoch, SandboxState::Running, made.execution(), &stopping).await.unwrap();
        drop(scene.restart(CONTAINER).await);
        let shown = scene.show(&made.id).await;
        assert_eq!((shown.state, shown.end.as_ref()), (SandboxState::Stopped, Some(&end)), "and says why it had to");
        assert!(!scene.is_on_the_host(IsolationClass::Container, &made.id).await);
    });
}

#[test]
fn what_the_store_does_not_know_is_removed_after_a_grace() {
    block_on(async {
        let _turn = alone().await;
        let mut scene = Scene::with(CONTAINER, ServiceConfig { orphan_grace: Duration::from_secs(2), ..settings() }).await;
        let known = scene.container().await;
        let orphan = scene.lab.sandbox(IsolationClass::Container).await;
        let id = orphan.execution.sandbox.clone();
        drop(scene.restart(CONTAINER).await);
        assert!(scene.is_on_the_host(IsolationClass::Container, &id).await, "it is left alone for a while");
        until(|| async { !scene.is_on_the_host(IsolationClass::Container, &id).await }).await;
        until(|| async { scene.service.statistics().orphans_removed >= 1 }).await;
        let session = scene.service.open(&scene.admin, &known.id).await.unwrap();
        assert_eq!(run(&**session.guest(), &["echo", "alive"]).await.text(), "alive");
        scene.kill([&known.id]).await;
    });
}

#[test]
fn a_row_that_cannot_be_read_is_left_alone_and_nothing_else_suffers() {
    block_on(async {
        let _turn = alone().await;
        let mut scene = Scene::with(CONTAINER, ServiceConfig { orphan_grace: Duration::from_secs(1), ..settings() }).await;
        let (broken, whole) = tokio::join!(scene.container(), scene.container());
        let body = spoil(&scene, &broken, "{\"id\":");
        let orphan = scene.lab.sandbox(IsolationClass::Container).await.execution.sandbox;
        drop(scene.restart(CONTAINER).await);
        until(|| async { !scene.is_on_the_host(IsolationClass::Container, &orphan).await }).await;
        assert!(scene.is_on_the_host(IsolationClass::Container, &broken.id).await, "it is not taken for an orphan");
        let refused = scene.service.sandbox(&scene.admin, &broken.id).await.unwrap_err();
        assert_eq!(refused.class(), ErrorClass::Internal);
        assert!(refused.to_string().contains(broken.id.as_str()), "{refused}");
        let page = belljar_core::PageRequest { order: belljar_core::Order::OldestFirst, after: None, limit: 10 };
        let page = scene.service.list(&scene.admin, &belljar_core::SandboxFilter::default(), &page).await.unwrap();
        assert_eq!(page.sandboxes.iter().map(|sandbox| &sandbox.id).collect::<Vec<_>>(), [&whole.id]);
        assert_eq!(page.unreadable.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), [broken.id.as_str()]);
        let session = scene.service.open(&scene.admin, &whole.id).await.unwrap();
        assert_eq!(run(&**session.guest(), &["echo", "alive"]).await.text(), "alive");
        let another = scene.container().await;

        // Whoever mends the row has the sandbox back.
        spoil(&scene, &broken, &body);
        drop(scene.restart(CONTAINER).await);
        let session = scene.service.open(&scene.admin, &broken.id).await.unwrap();
        assert_eq!(run(&**session.guest(), &["echo", "alive"]).await.text(), "alive");
        scene.kill([&broken.id, &whole.id, &another.id]).await;
    });
}

/// Overwrites what a sandbox's row holds, as nothing in the project can, and says what it was.
fn spoil(scene: &Scene, sandbox: &Sandbox, body: &str) -> String {
    let script = "import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=30)
print(database.execute('SELECT body FROM sandboxes WHERE id = ?', (sys.argv[2],)).fetchone()[0], end='')
assert database.execute('UPDATE sandboxes SET body = ? WHERE id = ?', (sys.argv[3], sys.argv[2])).rowcount == 1
database.commit()";
    let mut python = std::process::Command::new("python3");
    let output = python.arg("-c").arg(script).arg(scene.database()).args([sandbox.id.as_str(), body]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_sandbox_whose_engine_is_away_waits_for_it() {
    block_on(async {
        let _turn = among_others().await;
        let mut scene = Scene::open(BOTH).await;
        let (boxed, plain) = tokio::join!(scene.create(of_class(IsolationClass::Gvisor)), scene.container());
        let session = scene.service.open(&scene.admin, &boxed.id).await.unwrap();
        sh(&**session.guest(), "echo kept > note").await;
        drop(session);

        drop(scene.restart(CONTAINER).await);
        assert_eq!(scene.show(&boxed.id).await.state, SandboxState::Running, "it can be looked at");
        for refusal in [
            scene.service.open(&scene.admin, &boxed.id).await.map(drop),
            scene.service.kill(&scene.admin, &boxed.id).await.map(drop),
            scene.service.usage(&scene.admin, &boxed.id).await.map(drop),
            scene.service.update(&scene.admin, &boxed.id, belljar_core::SandboxChange::default()).await.map(drop),
        ] {
            let error = refusal.unwrap_err();
            assert_eq!((error.code(), error.class()), ("engine_unavailable", ErrorClass::Unavailable), "{error}");
            assert!(matches!(&error, CoreError::EngineAway { class: IsolationClass::Gvisor, .. }));
        }
        let session = scene.service.open(&scene.admin, &plain.id).await.unwrap();
        assert_eq!(run(&**session.guest(), &["echo", "alive"]).await.text(), "alive", "the other class is as it was");
        assert_eq!(code(scene.service.create(&scene.admin, of_class(IsolationClass::Gvisor)).await), "isolation_unavailable");

        drop(scene.restart(BOTH).await);
        let session = scene.service.open(&scene.admin, &boxed.id).await.unwrap();
        assert_eq!(sh(&**session.guest(), "cat note").await.text(), "kept");
        scene.kill([&boxed.id, &plain.id]).await;
    });
}

/// Rewrites when a sandbox was leased and started, as if the clock had jumped or the server had been away for long.
async fn shift(scene: &Scene, sandbox: &Arc<Sandbox>, change: impl FnOnce(&mut Sandbox)) {
    let epoch = scene.store.begin_epoch().await.unwrap();
    let mut shifted = (**sandbox).clone();
    change(&mut shifted);
    scene.store.record(epoch, SandboxState::Running, sandbox.execution(), &shifted).await.unwrap();
}

const HOUR: u64 = 3_600_000;

#[test]
fn leases_survive_restarts_and_jumps_of_the_clock() {
    block_on(async {
        let _turn = among_others().await;
        let config = ServiceConfig { restart_grace: Duration::from_secs(3), ..settings() };
        let mut scene = Scene::with(CONTAINER, config).await;
        let leased = |seconds| CreateSandbox { lease: Some(Duration::from_secs(seconds)), ..container() };
        let (normal, over, ahead, never) =
            tokio::join!(scene.create(leased(3600)), scene.create(leased(3600)), scene.create(leased(600)), scene.container());
        // Ran out an hour ago, while nobody watched.
        let now = Timestamp::now().0;
        shift(&scene, &over, |sandbox| {
            sandbox.leased_at = Timestamp(now - 2 * HOUR);
            sandbox.expires_at = Some(Timestamp(now - HOUR));
        })
        .await;
        // Leased for two seconds by a clock that was ten hours ahead: it must not live ten hours.
        shift(&scene, &ahead, |sandbox| {
            sandbox.leased_at = Timestamp(now + 10 * HOUR);
            sandbox.expires_at = Some(Timestamp(now + 10 * HOUR + 2000));
        })
        .await;
        shift(&scene, &never, |sandbox| sandbox.expires_at = None).await;
        drop(scene.restart(CONTAINER).await);
        let session = scene.service.open(&scene.admin, &over.id).await.expect("one that ran out meanwhile gets a grace");
        assert!(session.stat(&path("/"), None).await.is_ok());
        for sandbox in [&ahead, &over] {
            let gone = scene.ended(&sandbox.id).await;
            assert_eq!(gone.end.as_ref().unwrap().cause, EndCause::LeaseExpired);
        }
        let shown = scene.show(&normal.id).await;
        assert_eq!((shown.state, shown.expires_at), (SandboxState::Running, normal.expires_at));
        assert_eq!(scene.show(&never.id).await.state, SandboxState::Running);
        scene.kill([&normal.id, &never.id]).await;
    });
}

#[test]
fn wall_time_goes_on_while_no_server_is_there() {
    block_on(async {
        let _turn = among_others().await;
        let mut scene = Scene::open(CONTAINER).await;
        let limits = PartialLimits { wall_time: Some(Duration::from_secs(3)), ..PartialLimits::default() };
        let made = scene.create(CreateSandbox { limits, ..container() }).await;
        drop(scene.restart(CONTAINER).await);
        let gone = scene.ended(&made.id).await;
        assert_eq!((gone.state, gone.end.as_ref().unwrap().cause), (SandboxState::Stopped, EndCause::WallTime), "{:?}", gone.end);
    });
}
