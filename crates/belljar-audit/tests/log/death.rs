//! Acknowledged is kept: a process that writes is killed at any moment, and everything it said it had written is there.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use belljar_audit::AuditLog;
use belljar_ports::{Audit, AuditQuery};

use crate::bed::{Die, event, full, project};

const DIRECTORY: &str = "BELLJAR_AUDIT_WRITER_DIRECTORY";
/// How many write at once in the process that is killed: so that groups have more than one.
const WRITERS: usize = 4;

#[tokio::test]
async fn no_acknowledged_event_is_lost_by_a_kill() {
    let mut die = Die::seeded();
    let (directories, kills) = if full() { (50, 20) } else { (2, 8) };
    for _ in 0..directories {
        let directory = tempfile::tempdir().unwrap();
        let mut acknowledged = HashMap::new();
        for _ in 0..kills {
            let patience = die.below(60);
            acknowledged.extend(kill_after(directory.path(), patience));
        }
        let log = AuditLog::open(directory.path()).unwrap();
        log.record(event("after all")).await.unwrap();
        let verdict = log.verify(&project()).await.unwrap();
        assert!(verdict.faults.is_empty(), "{:?}", verdict.faults);
        let page = log.read(&project(), &AuditQuery { limit: usize::MAX, ..AuditQuery::default() }).await.unwrap();
        let kept: HashMap<u64, String> = page.records.into_iter().map(|(record, line)| (record.sequence, line)).collect();
        assert!(acknowledged.len() >= kills, "the writers wrote");
        for (sequence, mark) in acknowledged {
            let line = kept.get(&sequence).unwrap_or_else(|| panic!("event {sequence} was acknowledged and is gone"));
            assert!(line.contains(&mark), "event {sequence} was {mark} and is {line}");
        }
    }
}

/// What a writer acknowledged that was killed some time after `patience` acknowledgements.
fn kill_after(directory: &Path, patience: usize) -> Vec<(u64, String)> {
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "death::writes_until_it_is_killed", "--ignored", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(writer.stdout.take().unwrap());
    let mut said = String::new();
    let mut count = 0;
    while count <= patience {
        let start = said.len();
        assert_ne!(output.read_line(&mut said).unwrap(), 0, "the writer ended by itself");
        count += usize::from(said[start..].contains("wrote "));
    }
    writer.kill().unwrap();
    // What it still said before its death counts; half a line does not.
    output.read_to_string(&mut said).unwrap();
    writer.wait().unwrap();
    let whole_lines = said.rsplit_once('\n').map_or("", |(lines, _)| lines);
    let wrote = whole_lines.lines().filter_map(|line| line.split_once("wrote ")?.1.split_once(' '));
    wrote.map(|(sequence, mark)| (sequence.parse().unwrap(), mark.to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "is what the test above starts and kills"]
async fn writes_until_it_is_killed() {
    let log = Arc::new(AuditLog::open(Path::new(&std::env::var(DIRECTORY).unwrap())).unwrap());
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let log = Arc::clone(&log);
            tokio::spawn(async move {
                for number in 0_u64.. {
                    let mark = format!("mark-{}-{writer}-{number}-{}", std::process::id(), "x".repeat((number % 700) as usize));
                    let sequence = log.record(event(&mark)).await.unwrap();
                    println!("wrote {sequence} {mark}");
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
}
