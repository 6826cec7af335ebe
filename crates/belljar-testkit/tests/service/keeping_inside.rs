//! Files that programs inside ask to have kept, with `belljar-keep`.

use std::time::Duration;

use belljar_core::{ServiceConfig, TakeSnapshot};
use belljar_ports::{ArtifactStore, AuditQuery, SnapshotKind};
use belljar_testkit::{Finished, block_on, run, sh};
use belljar_types::{AuditAction, IsolationClass, ProcessSpec, SandboxId};
use futures_util::StreamExt;

use crate::scene::{BOTH, CONTAINER, Scene, among_others, of_class, settings, until};

async fn inside(scene: &Scene, sandbox: &SandboxId, script: &str) -> Finished {
    let session = scene.service.open(&scene.admin, sandbox).await.unwrap();
    sh(session.guest().as_ref(), script).await
}

async fn content(scene: &Scene, id: &str) -> Vec<u8> {
    let (_, pieces) = scene.service.artifact_content(&scene.admin, &id.parse().unwrap()).await.unwrap();
    pieces.map(Result::unwrap).collect::<Vec<_>>().await.concat()
}

#[test]
fn a_program_inside_keeps_a_file_and_is_told_its_id_or_why_not() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(BOTH).await;
        for class in [IsolationClass::Container, IsolationClass::Gvisor] {
            let sandbox = scene.create(of_class(class)).await;
            let said = inside(&scene, &sandbox.id, "cd ~ && seq 100000 > numbers && sha256sum numbers && belljar-keep numbers").await;
            assert_eq!(said.code(), 0, "{said:?}");
            let text = said.text();
            let (digest, id) = (text.split_whitespace().next().unwrap(), text.lines().last().unwrap());
            let kept = scene.service.artifact(&scene.admin, &id.parse().unwrap()).await.unwrap();
            assert_eq!((kept.name.as_str(), kept.sha256.as_str(), kept.media_type.as_str()), ("numbers", digest, "text/plain"));
            assert_eq!((kept.path.as_str(), &kept.sandbox), ("/home/user/numbers", &sandbox.id));
            assert!(content(&scene, id).await.ends_with(b"\n100000\n"));

            let named = inside(&scene, &sandbox.id, "belljar-keep --type=text/csv --name out.csv /home/user/numbers").await;
            let named = scene.service.artifact(&scene.admin, &named.text().trim().parse().unwrap()).await.unwrap();
            assert_eq!((named.name.as_str(), named.media_type.as_str()), ("out.csv", "text/csv"));
            let query = AuditQuery { sandbox: Some(sandbox.id.clone()), limit: 1000, ..AuditQuery::default() };
            // What has happened is handed to the log without waiting.
            let page = scene.service.audit(&scene.admin, None, &query, Duration::ZERO).await.unwrap();
            let written = page.records.iter().filter(|(record, _)| matches!(record.event.action, AuditAction::Artifact { .. }));
            assert_eq!(written.count(), 2);

            for (asked, why) in [
                ("belljar-keep ~/nothing", "/home/user/nothing: No such file"),
                ("belljar-keep ~", "directory"),
                ("belljar-keep /etc/shadow", "/etc/shadow: Permission denied"),
                ("belljar-keep ~/numbers --name ../x", "name"),
                ("belljar-keep ~/numbers --type nonsense", "media_type"),
                ("belljar-keep", "usage"),
            ] {
                let said = inside(&scene, &sandbox.id, asked).await;
                assert_eq!((said.code(), said.stdout.as_slice()), (1, b"".as_slice()), "{asked}: {said:?}");
                assert!(String::from_utf8_lossy(&said.stderr).contains(why), "{asked}: {said:?}");
            }
            assert_eq!(inside(&scene, &sandbox.id, "sudo belljar-keep /etc/shadow").await.code(), 0, "root reads what root may");
            let stranger = inside(&scene, &sandbox.id, "sudo -u daemon sudo id").await;
            assert!(String::from_utf8_lossy(&stranger.stderr).contains("daemon may not use sudo"), "{stranger:?}");
            assert!(scene.store.unfinished_artifacts().await.unwrap().is_empty());
            scene.kill([&sandbox.id]).await;
            assert!(!content(&scene, id).await.is_empty(), "it is there when the sandbox is gone");
        }
    });
}

#[test]
fn a_wish_is_heard_after_a_restart_of_the_server_a_pause_and_a_snapshot() {
    block_on(async {
        let _turn = among_others().await;
        let mut scene = Scene::open(BOTH).await;
        for class in [IsolationClass::Container, IsolationClass::Gvisor] {
            let sandbox = scene.create(of_class(class)).await;
            assert_eq!(inside(&scene, &sandbox.id, "echo x > ~/file; belljar-keep ~/file").await.code(), 0);

            // Whoever listens last hears, and a wish that is not answered is heard again by the next.
            let agent = scene.lab.second_runtime(class).guest(&sandbox.id).await.unwrap();
            let mut wishes = agent.wishes().await.unwrap();
            agent.start(&ProcessSpec::new(["sh", "-c", "belljar-keep ~/file > ~/told 2>&1; echo $? >> ~/told"])).await.unwrap();
            let wish = wishes.next().await.unwrap().unwrap();
            assert_eq!((wish.path.as_bytes(), wish.user.as_str()), (b"/home/user/file".as_slice(), "user"));
            let before = scene.restart(BOTH).await;
            until(|| async { inside(&scene, &sandbox.id, "cat ~/told").await.text().ends_with("\n0") }).await;
            assert!(wishes.next().await.is_none(), "who listened before is told that it is over");
            drop(before);

            scene.service.pause(&scene.admin, &sandbox.id, SnapshotKind::Memory).await.unwrap();
            scene.service.resume(&scene.admin, &sandbox.id, None).await.unwrap();
            let said = inside(&scene, &sandbox.id, "belljar-keep ~/file").await;
            assert_eq!(said.code(), 0, "after a pause: {said:?}");
            let snapshot = scene.service.take_snapshot(&scene.admin, &sandbox.id, TakeSnapshot::default()).await.unwrap();
            let said = inside(&scene, &sandbox.id, "belljar-keep ~/file").await;
            assert_eq!(said.code(), 0, "after a snapshot: {said:?}");
            scene.kill([&sandbox.id]).await;
            scene.service.remove_snapshot(&scene.admin, snapshot.id.as_str()).await.unwrap();
        }
    });
}

#[test]
fn a_wish_that_waits_during_a_pause_is_granted_after_it() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(BOTH).await;
        for class in [IsolationClass::Container, IsolationClass::Gvisor] {
            let sandbox = scene.create(of_class(class)).await;
            let agent = scene.lab.second_runtime(class).guest(&sandbox.id).await.unwrap();
            run(agent.as_ref(), &["sh", "-c", "echo x > ~/file"]).await;
            // The server's own ear is taken away, so that the wish waits.
            tokio::time::sleep(Duration::from_millis(500)).await;
            let mut wishes = agent.wishes().await.unwrap();
            agent.start(&ProcessSpec::new(["sh", "-c", "belljar-keep ~/file > ~/told 2>&1; echo $? >> ~/told"])).await.unwrap();
            wishes.next().await.unwrap().unwrap();
            drop(wishes);
            scene.service.pause(&scene.admin, &sandbox.id, SnapshotKind::Memory).await.unwrap();
            scene.service.resume(&scene.admin, &sandbox.id, None).await.unwrap();
            until(|| async { inside(&scene, &sandbox.id, "cat ~/told").await.text().ends_with("\n0") }).await;
            let listed = scene.service.artifacts(&scene.admin, Some(&sandbox.id), None, 10).await.unwrap();
            assert_eq!(listed.artifacts.len(), 1);
            scene.kill([&sandbox.id]).await;
        }
    });
}

#[test]
fn whoever_asks_too_much_inside_is_refused_and_leaves_nothing() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::with(CONTAINER, ServiceConfig { max_artifact_bytes: 1000, max_artifacts: 3, ..settings() }).await;
        let sandbox = scene.container().await;
        let large = inside(&scene, &sandbox.id, "seq 1000 > ~/large; belljar-keep ~/large").await;
        assert_eq!(large.code(), 1);
        assert!(String::from_utf8_lossy(&large.stderr).contains("1000"), "{large:?}");
        let script = "echo small > ~/small; for i in $(seq 40); do (belljar-keep ~/small >/dev/null 2>>~/refusals; echo $? >> ~/codes) & done; wait; sort ~/codes | uniq -c; sort ~/refusals | uniq -c";
        let said = inside(&scene, &sandbox.id, script).await.text();
        let codes: Vec<&str> = said.lines().take(2).map(str::trim).collect();
        assert_eq!(codes, ["3 0", "37 1"], "{said}");
        let kept = scene.service.artifacts(&scene.admin, Some(&sandbox.id), None, 100).await.unwrap();
        assert_eq!(kept.artifacts.len(), 3);
        // What is no request is dropped, and the next one is heard.
        let nonsense = r#"python3 - <<'E'
import socket,struct
for message in (b"", b"GET / HTTP/1.0\r\n\r\n", struct.pack("<IBBH", 0xffffffff, 5, 0, 0), struct.pack("<IBBH", 3, 5, 0, 0) + b"abc"):
    s = socket.socket(socket.AF_UNIX); s.connect("/run/belljar/keep.sock"); s.sendall(message); s.shutdown(1)
    try: assert s.recv(1) == b""
    except ConnectionResetError: pass
E"#;
        assert_eq!(inside(&scene, &sandbox.id, nonsense).await.code(), 0);
        let said = inside(&scene, &sandbox.id, "belljar-keep ~/small").await;
        assert!(String::from_utf8_lossy(&said.stderr).contains("artifacts of one sandbox"), "{said:?}");
        assert!(scene.store.unfinished_artifacts().await.unwrap().is_empty());
        scene.kill([&sandbox.id]).await;
    });
}
