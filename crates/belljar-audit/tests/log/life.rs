//! The life of a log: it is taken up again, grows over segments, is read in pages and by what it is about, and can be followed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use belljar_audit::{AuditLog, to_ocsf, verify_lines};
use belljar_ports::{Audit, AuditQuery};
use belljar_types::{AuditAction, AuditEvent, Phase, SandboxId};

use crate::bed::{PROJECT, event, project, segments, write};

#[tokio::test]
async fn it_goes_on_where_it_was_and_over_segments() {
    let directory = tempfile::tempdir().unwrap();
    let text = "x".repeat(900);
    for round in 0..2 {
        let log = AuditLog::open(directory.path()).unwrap();
        for _ in 0..5000 {
            log.note(event(&text)).await.unwrap();
        }
        assert_eq!(log.record(event("the end of a round")).await.unwrap(), 5001 * (round + 1));
    }
    assert!(segments(directory.path()).len() > 1);
    let log = AuditLog::open(directory.path()).unwrap();
    let verdict = log.verify(&project()).await.unwrap();
    assert_eq!((verdict.events, verdict.faults.len()), (10_002, 0), "{:?}", verdict.faults);
    let (mut after, mut seen) = (0, 0);
    loop {
        let page = log.read(&project(), &AuditQuery { after, limit: 999, ..AuditQuery::default() }).await.unwrap();
        for (record, _) in &page.records {
            seen += 1;
            assert_eq!(record.sequence, seen);
        }
        after = page.looked_until;
        if !page.more {
            break;
        }
    }
    assert_eq!(seen, 10_002);
}

#[tokio::test]
async fn what_nobody_waits_for_is_signed_soon_and_at_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let log = AuditLog::open(directory.path()).unwrap();
    log.note(event("an outcome")).await.unwrap();
    assert_eq!(log.wait(&project(), 0, Duration::from_secs(60)).await.unwrap(), 1, "it is signed although nothing follows");
    assert_eq!(log.checkpoint(&project()).await.unwrap().unwrap().sequence, 1);
    log.note(event("another")).await.unwrap();
    drop(log);
    let log = AuditLog::open(directory.path()).unwrap();
    assert_eq!(log.checkpoint(&project()).await.unwrap().unwrap().sequence, 2, "whoever ends signs for all");
    assert!(log.verify(&project()).await.unwrap().faults.is_empty());
}

#[tokio::test]
async fn what_a_killed_server_wrote_and_did_not_sign_is_told_by_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let head = directory.path().join(PROJECT).join("head");
    let log = AuditLog::open(directory.path()).unwrap();
    log.record(event("awaited")).await.unwrap();
    let signed = std::fs::read(&head).unwrap();
    log.note(event("an outcome")).await.unwrap();
    drop(log);
    // As a kill in the moment between writing and signing leaves it.
    drop(AuditLog::open(directory.path()).unwrap());
    std::fs::write(&head, signed).unwrap();
    std::fs::File::open(&segments(directory.path())[0]).unwrap().set_modified(std::time::SystemTime::now()).unwrap();
    let log = AuditLog::open(directory.path()).unwrap();
    assert_eq!(log.ends(&BTreeMap::new()).await.unwrap(), BTreeMap::from([(project(), 2)]), "although nothing follows");
    assert!(log.verify(&project()).await.unwrap().faults.is_empty());
}

#[tokio::test]
async fn events_are_found_by_what_they_are_about() {
    let directory = tempfile::tempdir().unwrap();
    let log = AuditLog::open(directory.path()).unwrap();
    let sandbox = SandboxId::random();
    write(&log, 20).await;
    let about =
        AuditEvent { sandbox: Some(sandbox.clone()), action: AuditAction::Port { verb: "connect".to_owned(), port: 80 }, ..event("") };
    log.record(about).await.unwrap();
    write(&log, 20).await;
    let found = |query: AuditQuery| {
        let log = &log;
        async move { log.read(&project(), &query).await.unwrap().records.len() }
    };
    let all = AuditQuery { limit: 100, ..AuditQuery::default() };
    assert_eq!(found(all.clone()).await, 41);
    assert_eq!(found(AuditQuery { sandbox: Some(sandbox), ..all.clone() }).await, 1);
    assert_eq!(found(AuditQuery { kinds: vec!["port".to_owned()], ..all.clone() }).await, 1);
    assert_eq!(found(AuditQuery { until: Some(belljar_types::Timestamp(1)), ..all.clone() }).await, 0);
    let nothing = log.read(&"nobody".parse().unwrap(), &all).await.unwrap();
    assert!(nothing.records.is_empty() && !nothing.more);
}

#[tokio::test]
async fn whoever_follows_is_woken_by_the_next_event() {
    let directory = tempfile::tempdir().unwrap();
    let log = Arc::new(AuditLog::open(directory.path()).unwrap());
    write(&log, 3).await;
    assert_eq!(log.wait(&project(), 2, Duration::from_secs(60)).await.unwrap(), 3, "there already");
    assert_eq!(log.wait(&project(), 3, Duration::from_millis(1)).await.unwrap(), 3, "nothing came");
    let following = tokio::spawn({
        let log = Arc::clone(&log);
        async move { log.wait(&project(), 3, Duration::from_secs(600)).await.unwrap() }
    });
    log.record(event("wakes")).await.unwrap();
    assert_eq!(following.await.unwrap(), 4);
}

#[tokio::test]
async fn an_export_can_be_checked_without_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let log = AuditLog::open(directory.path()).unwrap();
    write(&log, 12).await;
    let page = log.read(&project(), &AuditQuery { limit: 100, ..AuditQuery::default() }).await.unwrap();
    let checkpoint = log.checkpoint(&project()).await.unwrap();
    let lines = || page.records.iter().map(|(_, line)| line.as_bytes());
    assert!(verify_lines(&project(), lines(), checkpoint.clone()).faults.is_empty());
    assert!(!verify_lines(&project(), lines().take(11), checkpoint.clone()).faults.is_empty(), "without its end");
    assert!(!verify_lines(&project(), lines().skip(1), checkpoint.clone()).faults.is_empty(), "without its beginning");
    let mut forged = checkpoint.unwrap();
    forged.sequence = 11;
    assert!(!verify_lines(&project(), lines().take(11), Some(forged)).faults.is_empty(), "with a forged checkpoint");
}

#[tokio::test]
async fn ocsf_keeps_everything() {
    let directory = tempfile::tempdir().unwrap();
    let log = AuditLog::open(directory.path()).unwrap();
    let actions = [
        AuditAction::lifecycle("create", Phase::Done, []),
        AuditAction::ExecEnded { process: "p".to_owned(), exit_code: Some(3), signal: None, cause: None, stdout: None, stderr: None },
        AuditAction::Network {
            verdict: "deny".to_owned(),
            protocol: "tcp".to_owned(),
            host: "evil.example".to_owned(),
            port: 443,
            rule: "default".to_owned(),
            detail: [].into(),
        },
    ];
    for action in actions.clone() {
        log.record(AuditEvent { action, ..event("") }).await.unwrap();
    }
    let page = log.read(&project(), &AuditQuery { limit: 9, ..AuditQuery::default() }).await.unwrap();
    let classes: Vec<_> = page.records.iter().map(|(record, _)| to_ocsf(record)).collect();
    let types: Vec<_> = classes.iter().map(|value| value["type_uid"].as_u64().unwrap()).collect();
    assert_eq!(types, [600_301, 100_702, 400_105]);
    for (value, action) in classes.iter().zip(&actions) {
        assert_eq!(serde_json::from_value::<AuditAction>(value["unmapped"].clone()).unwrap(), *action);
    }
}
