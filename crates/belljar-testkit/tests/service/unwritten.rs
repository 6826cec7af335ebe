//! A store that refuses a write in the middle of something, as one does whose disk is full, and a caller who hangs up in the middle of something. What
//! was begun is brought to its end, and written down.

use std::process::Command;
use std::time::Duration;

use belljar_core::{CreateSandbox, CreateVolume, Lease};
use belljar_ports::VolumeStore as _;
use belljar_testkit::{block_on, run};
use belljar_types::{AuditAction, AuditRecord, PauseKind, Phase, SandboxState, VolumeState};

use crate::scene::{CONTAINER, Scene, among_others, code, container, until};

/// Runs a statement in the store's own file.
fn in_the_store(scene: &Scene, statement: &str) {
    let script = "import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=30)
database.execute(sys.argv[2])
database.commit()";
    let output = Command::new("python3").arg("-c").arg(script).arg(scene.database()).arg(statement).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// From now on the store takes no sandbox in this state.
fn refuse(scene: &Scene, state: &str) {
    let statement = format!(
        "CREATE TRIGGER full BEFORE UPDATE ON sandboxes WHEN NEW.state = '{state}' AND OLD.state <> '{state}' BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
    );
    in_the_store(scene, &statement);
}

fn take_again(scene: &Scene) {
    in_the_store(scene, "DROP TRIGGER full");
}

#[test]
fn a_pause_and_a_resume_that_could_not_be_written_down_are_written_later() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        for kind in [PauseKind::Filesystem, PauseKind::Memory] {
            let short = Duration::from_secs(3);
            let sandbox = scene.create(CreateSandbox { lease: Some(short), ..container() }).await;
            let id = &sandbox.id;

            refuse(&scene, "paused");
            assert_eq!(code(scene.service.pause(&scene.admin, id, kind).await), "store_failed");
            let busy = scene.service.set_lease(&scene.admin, id, Lease::FromNow(short)).await;
            assert_eq!(code(busy), "busy", "nothing is built on a state that it is not in");
            take_again(&scene);
            until(|| async { scene.show(id).await.state == SandboxState::Paused }).await;
            // Nothing wound up its lease meanwhile: it stands still for as long as anybody likes.
            tokio::time::sleep(short + Duration::from_secs(1)).await;
            assert_eq!(scene.show(id).await.state, SandboxState::Paused, "{kind:?}");

            refuse(&scene, "running");
            assert_eq!(code(scene.service.resume(&scene.admin, id, Some(Duration::from_secs(600))).await), "store_failed");
            take_again(&scene);
            until(|| async { scene.show(id).await.state == SandboxState::Running }).await;
            let session = scene.service.open(&scene.admin, id).await.unwrap();
            assert_eq!(run(session.guest().as_ref(), &["echo", "here"]).await.stdout, b"here\n");
            drop(session);

            refuse(&scene, "paused");
            assert_eq!(code(scene.service.pause(&scene.admin, id, kind).await), "store_failed");
            scene.kill([id]).await;
            take_again(&scene);
            assert!(!scene.is_on_the_host(sandbox.class, id).await, "it can be killed while the store takes nothing");
        }
    });
}

#[test]
fn a_lease_that_is_set_while_it_stands_still_is_no_longer_than_it_says() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let (hour, minute) = (Duration::from_secs(3600), Duration::from_secs(60));
        let sandbox = scene.create(CreateSandbox { lease: Some(hour), ..container() }).await;
        scene.service.pause(&scene.admin, &sandbox.id, PauseKind::Filesystem).await.unwrap();
        let pause = Duration::from_secs(3);
        tokio::time::sleep(pause).await;
        let kept =
            scene.service.set_lease(&scene.admin, &sandbox.id, Lease::AtLeast(hour - pause - Duration::from_secs(60))).await.unwrap();
        assert_eq!(kept.expires_at, sandbox.expires_at, "more than that is left");
        let set = scene.service.set_lease(&scene.admin, &sandbox.id, Lease::FromNow(10 * minute)).await.unwrap();
        tokio::time::sleep(pause).await;
        let resumed = scene.service.resume(&scene.admin, &sandbox.id, None).await.unwrap();
        let left = resumed.leased_at.until(resumed.expires_at.unwrap());
        assert!(left <= 10 * minute && left > 9 * minute, "{left:?} after {set:?}");
        scene.kill([&sandbox.id]).await;
    });
}

#[test]
fn time_on_disk_is_no_wall_time() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let limits = belljar_core::PartialLimits { wall_time: Some(Duration::from_secs(5)), ..belljar_core::PartialLimits::default() };
        let sandbox = scene.create(CreateSandbox { limits, ..container() }).await;
        scene.service.pause(&scene.admin, &sandbox.id, PauseKind::Filesystem).await.unwrap();
        tokio::time::sleep(Duration::from_secs(6)).await;
        scene.service.resume(&scene.admin, &sandbox.id, None).await.unwrap();
        let session = scene.service.open(&scene.admin, &sandbox.id).await.unwrap();
        assert_eq!(run(session.guest().as_ref(), &["echo", "still here"]).await.stdout, b"still here\n");
        drop(session);
        let ended = scene.ended(&sandbox.id).await;
        assert_eq!(ended.end.as_ref().unwrap().cause, belljar_types::EndCause::WallTime, "and what it ran counts");
    });
}

#[test]
fn what_was_begun_is_done_although_whoever_asked_has_gone() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let request = || CreateVolume { name: "gone".parse().unwrap(), size_bytes: Some(4 << 20), bucket: None };
        for _ in 0..8 {
            let volume = scene.service.create_volume(&scene.admin, request()).await.unwrap();
            let removing = scene.service.remove_volume(&scene.admin, "gone");
            let begun = async {
                loop {
                    let (rows, _) = scene.store.all_volumes().await.unwrap();
                    if rows.iter().all(|row| row.id != volume.id || row.state == VolumeState::Removing) {
                        return;
                    }
                    tokio::task::yield_now().await;
                }
            };
            // Whichever is first: the rest is dropped, as when a client hangs up.
            tokio::select! { biased; () = begun => {}, removed = removing => removed.unwrap() }
            until(|| async { scene.store.all_volumes().await.unwrap().0.is_empty() }).await;
        }
        let told = async || {
            let query = belljar_core::AuditQuery { limit: 1000, ..belljar_core::AuditQuery::default() };
            let log = scene.service.audit(&scene.admin, None, &query, Duration::ZERO).await.unwrap();
            let told = |(record, _): &&(AuditRecord, String)| matches!(&record.event.action, AuditAction::Lifecycle { verb, phase: Phase::Done, .. } if verb == "remove_volume");
            log.records.iter().filter(told).count()
        };
        until(async || told().await == 8).await;
    });
}

/// What was done to templates, as the log tells it.
async fn done(scene: &Scene) -> Vec<String> {
    let query = belljar_core::AuditQuery { limit: 1000, ..belljar_core::AuditQuery::default() };
    let log = scene.service.audit(&scene.admin, None, &query, Duration::ZERO).await.unwrap();
    let told = |(record, _): &(AuditRecord, String)| match &record.event.action {
        AuditAction::Template { verb, phase: Phase::Done, .. } => Some(verb.clone()),
        _ => None,
    };
    log.records.iter().filter_map(told).collect()
}

#[test]
fn names_and_owners_of_templates_are_written_down() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let (base, more) = (scene.config.default_template.clone(), "one-more-name".parse().unwrap());
        scene.service.name_template(&scene.admin, &base, more).await.unwrap();
        let more = "one-more-name".parse().unwrap();
        scene.service.share_template(&scene.admin, &more, true).await.unwrap();
        scene.service.share_template(&scene.admin, &more, false).await.unwrap();
        scene.service.remove_template(&scene.admin, &more, false).await.unwrap();
        // How something ended is handed to the log without waiting for it.
        until(async || done(&scene).await == ["name", "share", "unshare", "remove"]).await;
    });
}
