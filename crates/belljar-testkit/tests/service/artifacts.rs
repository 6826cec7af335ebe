//! Files that are kept: read through the agent, checked, bounded, and there when sandbox and server are gone.

use std::time::Duration;

use belljar_core::{KeepFile, ServiceConfig};
use belljar_ports::{ArtifactStore, Store};
use belljar_testkit::{block_on, path, run};
use belljar_types::{Artifact, ArtifactId, ArtifactState, IsolationClass, Scope};
use futures_util::StreamExt;

use crate::scene::{BOTH, CONTAINER, Scene, among_others, code, of_class, settings, until};

fn keep(file: &str) -> KeepFile {
    KeepFile { path: path(file), user: None, name: None, media_type: None, lifetime: None }
}

async fn content(scene: &Scene, id: &ArtifactId) -> Vec<u8> {
    let (_, pieces) = scene.service.artifact_content(&scene.admin, id).await.unwrap();
    pieces.map(Result::unwrap).collect::<Vec<_>>().await.concat()
}

#[test]
fn a_kept_file_outlives_its_sandbox_and_the_server() {
    block_on(async {
        let _turn = among_others().await;
        let mut scene = Scene::open(BOTH).await;
        for class in [IsolationClass::Container, IsolationClass::Gvisor] {
            let sandbox = scene.create(of_class(class)).await;
            let session = scene.service.open(&scene.admin, &sandbox.id).await.unwrap();
            let made =
                run(session.guest().as_ref(), &["sh", "-c", "printf '%%PDF-x' > ~/report; seq 200000 >> ~/report; sha256sum ~/report"])
                    .await;
            let digest = String::from_utf8(made.stdout).unwrap().split_whitespace().next().unwrap().to_owned();
            drop(session);
            let kept = scene.service.keep_file(&scene.admin, &sandbox.id, keep("/home/user/report")).await.unwrap();
            assert_eq!(
                (kept.name.as_str(), kept.media_type.as_str(), kept.sha256.as_str()),
                ("report", "application/pdf", digest.as_str())
            );
            scene.kill([&sandbox.id]).await;
            scene.restart(BOTH).await;
            let listed = scene.service.artifacts(&scene.admin, Some(&sandbox.id), None, 10).await.unwrap();
            assert_eq!(listed.artifacts, std::slice::from_ref(&kept));
            let bytes = content(&scene, &kept.id).await;
            assert_eq!(bytes.len() as u64, kept.bytes);
            assert!(bytes.starts_with(b"%PDF-x1\n2\n") && bytes.ends_with(b"\n200000\n"));

            let stranger = scene.caller("stranger", &[Scope::Use, Scope::Read]).await;
            assert_eq!(code(scene.service.artifact(&stranger, &kept.id).await), "artifact_not_found");
            assert_eq!(code(scene.service.artifact_content(&stranger, &kept.id).await.map(drop)), "artifact_not_found");
            assert_eq!(code(scene.service.remove_artifact(&stranger, &kept.id).await), "artifact_not_found");
            scene.service.remove_artifact(&scene.admin, &kept.id).await.unwrap();
            assert_eq!(code(scene.service.artifact(&scene.admin, &kept.id).await), "artifact_not_found");
        }
    });
}

#[test]
fn what_is_no_file_too_large_or_not_there_leaves_nothing() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::with(CONTAINER, ServiceConfig { max_artifact_bytes: 1000, max_artifacts: 2, ..settings() }).await;
        let sandbox = scene.container().await;
        let session = scene.service.open(&scene.admin, &sandbox.id).await.unwrap();
        run(session.guest().as_ref(), &["sh", "-c", "seq 1000 > ~/large; echo small > ~/small"]).await;
        drop(session);
        let ask = |request| scene.service.keep_file(&scene.admin, &sandbox.id, request);
        assert_eq!(code(ask(keep("/home/user/large")).await), "artifact_too_large");
        // A file that says it has no bytes.
        assert_eq!(code(ask(keep("/proc/meminfo")).await), "artifact_too_large");
        assert_eq!(code(ask(keep("/home/user/none")).await), "file_not_found");
        assert!(ask(keep("/home/user")).await.is_err(), "a directory is no file");
        let named = KeepFile { name: Some("../x".to_owned()), ..keep("/home/user/small") };
        assert_eq!(ask(named).await.unwrap_err().invalid().unwrap().field, "name");
        assert!(scene.store.unfinished_artifacts().await.unwrap().is_empty());
        assert!(blobs_in(&scene).is_empty());

        let brief = KeepFile { lifetime: Some(Duration::from_secs(1)), ..keep("/home/user/small") };
        let kept = ask(brief).await.unwrap();
        until(|| async { scene.service.artifact(&scene.admin, &kept.id).await.is_err() }).await;
        until(|| async { blobs_in(&scene).is_empty() }).await;
        for _within_the_limit in 0..2 {
            ask(keep("/home/user/small")).await.unwrap();
        }
        assert_eq!(code(ask(keep("/home/user/small")).await), "quota_exceeded");
        scene.kill([&sandbox.id]).await;
    });
}

#[test]
fn all_that_is_due_after_a_long_absence_goes_at_once() {
    block_on(async {
        let _turn = among_others().await;
        let mut scene = Scene::open(CONTAINER).await;
        let sandbox = scene.container().await;
        run(scene.service.open(&scene.admin, &sandbox.id).await.unwrap().guest().as_ref(), &["touch", "/home/user/small"]).await;
        let kept = scene.service.keep_file(&scene.admin, &sandbox.id, keep("/home/user/small")).await.unwrap();
        let epoch = scene.store.begin_epoch().await.unwrap();
        for _ in 0..250 {
            let id = ArtifactId::random();
            let keeping = Artifact { id, state: ArtifactState::Keeping, expires_at: Some(kept.created_at), ..kept.clone() };
            scene.store.enter_artifact(epoch, &keeping, 1000).await.unwrap();
            let due = Artifact { state: ArtifactState::Kept, ..keeping };
            scene.store.record_artifact(epoch, ArtifactState::Keeping, &due).await.unwrap();
        }
        scene.restart(CONTAINER).await;
        until(|| async { scene.service.artifacts(&scene.admin, None, None, 1000).await.unwrap().artifacts.len() == 1 }).await;
        scene.service.remove_artifact(&scene.admin, &kept.id).await.unwrap();
        scene.kill([&sandbox.id]).await;
    });
}

#[test]
fn a_server_that_comes_back_removes_what_was_half_kept_or_half_removed() {
    block_on(async {
        let _turn = among_others().await;
        let mut scene = Scene::open(CONTAINER).await;
        let sandbox = scene.container().await;
        let session = scene.service.open(&scene.admin, &sandbox.id).await.unwrap();
        run(session.guest().as_ref(), &["sh", "-c", "echo small > ~/small"]).await;
        drop(session);
        let mut kept = Vec::new();
        for _each in 0..3 {
            kept.push(scene.service.keep_file(&scene.admin, &sandbox.id, keep("/home/user/small")).await.unwrap());
        }
        // As a server leaves them that died after the bytes were put, and after it was written down that they go.
        let epoch = scene.store.begin_epoch().await.unwrap();
        for (artifact, state) in kept.iter().zip([ArtifactState::Keeping, ArtifactState::Removing]) {
            let half = Artifact { state, ..artifact.clone() };
            scene.store.record_artifact(epoch, ArtifactState::Kept, &half).await.unwrap();
        }
        assert_eq!(blobs_in(&scene).len(), 3);
        scene.restart(CONTAINER).await;
        until(|| async { blobs_in(&scene) == [kept[2].id.to_string()] }).await;
        until(|| async { scene.store.unfinished_artifacts().await.unwrap().is_empty() }).await;
        assert_eq!(content(&scene, &kept[2].id).await, b"small\n");

        // Bytes that changed where they are kept are not given out as if they were whole.
        std::fs::write(scene.directory().join("blobs/artifacts").join(kept[2].id.as_str()), "smalL\n").unwrap();
        let (_, pieces) = scene.service.artifact_content(&scene.admin, &kept[2].id).await.unwrap();
        assert!(pieces.map(|piece| piece.map(drop)).collect::<Vec<_>>().await.into_iter().any(|piece| piece.is_err()));
        scene.kill([&sandbox.id]).await;
    });
}

fn blobs_in(scene: &Scene) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(scene.directory().join("blobs/artifacts")) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
