//! Everything that is done through the service is written down, by whom, before it is done; and what cannot be written is not done.

use std::path::Path;
use std::time::Duration;

use belljar_core::{AuditQuery, in_the_name_of};
use belljar_ports::Audit;
use belljar_testkit::{block_on, path, pattern, sha256};
use belljar_types::{
    Actor, AuditAction, AuditEvent, AuditRecord, ByteRange, OutputEvent, Phase, ProcessSpec, SandboxId, Scope, WriteOptions,
};
use futures_util::StreamExt;

use crate::scene::{CONTAINER, Scene, among_others, code, container};

/// More than waits to be digested at a time, and no multiple of anything.
const LARGE: usize = (9 << 20) + 7;

/// Everything that was handed over before is written when this returns.
async fn settle(scene: &Scene) {
    let action = AuditAction::Log { detail: "for a test".to_owned() };
    let (project, actor) = (scene.admin.project.clone(), Actor::default());
    scene.audit.record(AuditEvent { project, sandbox: None, actor, action }).await.unwrap();
}

async fn events(scene: &Scene, sandbox: &SandboxId) -> Vec<AuditRecord> {
    settle(scene).await;
    let query = AuditQuery { sandbox: Some(sandbox.clone()), limit: 1000, ..AuditQuery::default() };
    let page = scene.service.audit(&scene.admin, None, &query, Duration::ZERO).await.unwrap();
    page.records.into_iter().map(|(record, _)| record).collect()
}

/// A word for what happened.
fn word(record: &AuditRecord) -> String {
    match &record.event.action {
        AuditAction::Lifecycle { verb, phase, .. } | AuditAction::File { verb, phase, .. } => format!("{verb} {phase:?}"),
        other => other.kind().to_owned(),
    }
}

#[test]
fn a_life_is_written_down_with_who_did_it() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let made = in_the_name_of("request-1", Box::pin(scene.container())).await;
        let session = in_the_name_of("request-2", scene.service.open(&scene.admin, &made.id)).await.unwrap();
        let mut spec = ProcessSpec::new(["sh", "-c", "printf hello; exit 3"]);
        spec.env.insert("TOKEN".to_owned(), "very-secret-value".to_owned());
        let (_, mut output) = session.start_attached(&spec).await.unwrap();
        while let Some(event) = output.next().await {
            if let OutputEvent::Exit(_) = event.unwrap() {
                break;
            }
        }
        let content = Box::pin(futures_util::stream::iter([Ok(bytes::Bytes::from_static(b"abc"))]));
        session.write_file(&path("/tmp/a"), &WriteOptions::default(), content).await.unwrap();
        session.remove(&path("/tmp/a"), None).await.unwrap();
        assert!(session.remove(&path("/tmp/no-such-file"), None).await.is_err());
        scene.service.kill(&scene.admin, &made.id).await.unwrap();

        let all = events(&scene, &made.id).await;
        let words: Vec<String> = all.iter().map(word).collect();
        let expected = [
            "create Intent",
            "create Done",
            "exec_started",
            "exec_ended",
            "write Intent",
            "write Done",
            "remove Intent",
            "remove Done",
            "remove Intent",
            "remove Failed",
            "kill Intent",
            "end Done",
        ];
        assert_eq!(words, expected);
        assert!(all[..11].iter().all(|record| record.event.actor.key.as_ref() == Some(&scene.admin.key)));
        assert_eq!(all[0].event.actor.request.as_deref(), Some("request-1"));
        assert_eq!(all[2].event.actor.request.as_deref(), Some("request-2"));
        assert_eq!(all[11].event.actor.key, None, "the end is the server's own doing");
        let AuditAction::ExecStarted { argv, env_names, .. } = &all[2].event.action else { panic!("{:?}", all[2]) };
        assert_eq!((argv[2].as_str(), env_names[0].as_str()), ("printf hello; exit 3", "TOKEN"));
        let AuditAction::ExecEnded { exit_code, stdout, .. } = &all[3].event.action else { panic!("{:?}", all[3]) };
        assert_eq!(*exit_code, Some(3));
        let hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        assert_eq!(stdout.as_ref().unwrap().sha256.as_deref(), Some(hello));
        let AuditAction::File { content: Some(written), .. } = &all[5].event.action else { panic!("{:?}", all[5]) };
        assert_eq!((written.bytes, written.sha256.as_deref().unwrap().len()), (3, 64));
        let text = serde_json::to_string(&all).unwrap();
        assert!(!text.contains("very-secret-value"), "values of variables are not for the log");
        let verdict = scene.service.verify_audit(&scene.admin, None).await.unwrap();
        assert!(verdict.faults.is_empty() && verdict.events >= 12, "{:?}", verdict.faults);
    });
}

#[test]
fn a_large_file_is_answered_for_before_it_is_digested_and_told_before_the_server_ends() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let made = Box::pin(scene.container()).await;
        let session = scene.service.open(&scene.admin, &made.id).await.unwrap();
        let all = bytes::Bytes::from(pattern(LARGE));
        let pieces: Vec<_> = all.chunks(100_000).map(|piece| Ok(all.slice_ref(piece))).collect();
        session.write_file(&path("/tmp/a"), &WriteOptions::default(), Box::pin(futures_util::stream::iter(pieces))).await.unwrap();
        let content = session.read_file(&path("/tmp/a"), ByteRange::default(), None).await.unwrap();
        let read: Vec<_> = content.bytes.map(Result::unwrap).collect().await;
        assert!(read.concat() == all);
        drop(session);
        scene.service.stop(Duration::from_secs(60)).await;
        let query = AuditQuery { sandbox: Some(made.id.clone()), kinds: vec!["file".to_owned()], limit: 10, ..AuditQuery::default() };
        settle(&scene).await;
        let told = scene.audit.read(&scene.admin.project, &query).await.unwrap().records;
        let mut done = Vec::new();
        for (record, _) in &told {
            if let AuditAction::File { verb, content: Some(content), .. } = &record.event.action {
                assert_eq!((content.bytes, content.sha256.as_ref()), (LARGE as u64, Some(&sha256(&all))), "{verb}");
                done.push(verb.as_str());
            }
        }
        done.sort_unstable();
        assert_eq!(done, ["read", "write"], "{told:?}");
        assert_eq!(told.len(), 4, "each has its intent");
    });
}

#[test]
fn keys_and_projects_are_written_down_and_another_projects_log_is_not_there() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let other = scene.caller("other", &[Scope::Read, Scope::Use]).await;
        settle(&scene).await;
        let query = AuditQuery { kinds: vec!["access".to_owned()], limit: 100, ..AuditQuery::default() };
        let page = scene.service.audit(&scene.admin, None, &query, Duration::ZERO).await.unwrap();
        let words: Vec<(String, Phase)> = page
            .records
            .iter()
            .filter_map(|(record, _)| match &record.event.action {
                AuditAction::Access { verb, phase, .. } => Some((verb.clone(), *phase)),
                _ => None,
            })
            .collect();
        let of = |verb: &str, phase| (verb.to_owned(), phase);
        let expected = [
            of("add_project", Phase::Intent),
            of("add_project", Phase::Done),
            of("add_key", Phase::Intent),
            of("add_key", Phase::Done),
            of("key", Phase::Done),
        ];
        assert_eq!(words, expected);
        let theirs = scene.admin.project.clone();
        assert_eq!(code(scene.service.audit(&other, Some(&theirs), &query, Duration::ZERO).await), "project_not_found");
        assert_eq!(code(scene.service.verify_audit(&other, Some(&theirs)).await), "project_not_found");
        assert!(scene.service.audit(&other, None, &query, Duration::ZERO).await.unwrap().records.is_empty());
        assert!(scene.service.audit(&scene.admin, Some(&other.project), &query, Duration::ZERO).await.is_ok());
    });
}

/// Breaks a project's log: a byte of its head.
fn break_the_log(project: &Path) {
    let head = project.join("head");
    let text = std::fs::read_to_string(&head).unwrap();
    std::fs::write(&head, text.replacen("\"seq\":", "\"sex\":", 1)).unwrap();
}

#[test]
fn what_cannot_be_recorded_is_not_done_unless_the_operator_said_so() {
    block_on(async {
        let _turn = among_others().await;
        for required in [true, false] {
            let mut scene =
                Scene::with(CONTAINER, belljar_core::ServiceConfig { audit_required: required, ..crate::scene::settings() }).await;
            let made = scene.container().await;
            // The log is taken up anew by the next server, which finds it broken.
            scene.reopen_the_log(break_the_log);
            scene.restart(CONTAINER).await;
            let session = scene.service.open(&scene.admin, &made.id).await.unwrap();
            let started = session.start(&ProcessSpec::new(["true"])).await;
            let created = scene.service.create(&scene.admin, container()).await;
            if required {
                let refused = session.explain(started.unwrap_err()).await;
                assert_eq!(refused.code(), "audit_unavailable");
                assert_eq!(code(created), "audit_unavailable");
            } else {
                assert!(started.is_ok());
                scene.kill([&created.unwrap().id]).await;
            }
            scene.service.kill(&scene.admin, &made.id).await.unwrap();
            assert!(scene.audit.verify(&scene.admin.project).await.unwrap().faults.iter().any(|fault| fault.contains("head")));
        }
    });
}
