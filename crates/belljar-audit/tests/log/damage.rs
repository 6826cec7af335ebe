//! Taking a log up again: half an event that nobody was promised is cut off and the cut is told; everything else is left and reported.

use std::os::unix::fs::FileExt;

use belljar_audit::AuditLog;
use belljar_ports::{Audit, AuditError, AuditQuery};
use belljar_types::AuditAction;

use crate::bed::{event, project, segments, write};

/// Puts bytes where the lines end.
fn put_at_the_end(root: &std::path::Path, bytes: &[u8]) {
    let path = segments(root).pop().unwrap();
    let content = std::fs::read(&path).unwrap();
    let end = content.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1;
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().write_all_at(bytes, end).unwrap();
}

async fn written(count: u64) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    write(&AuditLog::open(directory.path()).unwrap(), count).await;
    directory
}

#[tokio::test]
async fn half_an_event_is_cut_off_and_the_cut_is_an_event() {
    let directory = written(5).await;
    put_at_the_end(directory.path(), br#"{"seq":6,"at":17000"#);
    let log = AuditLog::open(directory.path()).unwrap();
    assert_eq!(log.record(event("goes on")).await.unwrap(), 7);
    let page = log.read(&project(), &AuditQuery { after: 5, limit: 10, ..AuditQuery::default() }).await.unwrap();
    let AuditAction::Log { detail } = &page.records[0].0.event.action else { panic!("{:?}", page.records) };
    assert!(detail.starts_with("cut off 19 bytes"), "{detail}");
    assert!(log.verify(&project()).await.unwrap().faults.is_empty());
}

#[tokio::test]
async fn a_whole_line_that_does_not_fit_is_reported_and_left() {
    let directory = written(5).await;
    put_at_the_end(directory.path(), b"{\"seq\":6}\n");
    let before = std::fs::read(&segments(directory.path())[0]).unwrap();
    let log = AuditLog::open(directory.path()).unwrap();
    for _ in 0..2 {
        let refused = log.record(event("not taken")).await;
        assert!(matches!(refused, Err(AuditError::Damaged { .. })), "{refused:?}");
    }
    assert_eq!(std::fs::read(&segments(directory.path())[0]).unwrap(), before, "nothing was changed");
}

#[tokio::test]
async fn an_end_that_was_cut_off_is_reported_and_other_projects_go_on() {
    let directory = written(5).await;
    let path = segments(directory.path()).pop().unwrap();
    let content = std::fs::read(&path).unwrap();
    let third = content.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(2).unwrap().0;
    std::fs::write(&path, &content[..=third]).unwrap();
    let log = AuditLog::open(directory.path()).unwrap();
    let refused = log.record(event("not taken")).await.unwrap_err().to_string();
    assert!(refused.contains("ends at event 3, and 5 were signed"), "{refused}");
    let other = belljar_types::AuditEvent { project: "other".parse().unwrap(), ..event("taken") };
    assert_eq!(log.record(other).await.unwrap(), 1);
}

#[tokio::test]
async fn a_log_of_another_servers_key_is_not_written_to() {
    let directory = written(3).await;
    std::fs::remove_file(directory.path().join("signing-key")).unwrap();
    let log = AuditLog::open(directory.path()).unwrap();
    let refused = log.record(event("not taken")).await.unwrap_err().to_string();
    assert!(refused.contains("another key"), "{refused}");
}
