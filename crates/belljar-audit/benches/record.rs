//! What it costs to write down the start and the end of a process, one after the other and many at once, beside what the disk takes for a line
//! that is flushed. Prints; checks nothing.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot run has nothing to tell, and tells the rest on standard output"
)]

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use belljar_audit::AuditLog;
use belljar_ports::Audit;
use belljar_types::{Actor, AuditAction, AuditEvent, ExitStatus, ProcessSpec, ProjectId, SandboxId, Termination};

const EACH: usize = 500;

fn event(project: &ProjectId, sandbox: &SandboxId, action: AuditAction) -> AuditEvent {
    AuditEvent { project: project.clone(), sandbox: Some(sandbox.clone()), actor: Actor::default(), action }
}

/// An execution, as the service writes it: the start is waited for, the end is handed over.
async fn execution(log: &AuditLog, project: &ProjectId, sandbox: &SandboxId) -> Duration {
    let spec = ProcessSpec::new(["/bin/sh", "-c", "echo something that is long enough to be real"]);
    let exit = ExitStatus { termination: Termination::Exited(0), cause: None };
    let begin = Instant::now();
    log.record(event(project, sandbox, AuditAction::exec_started(&spec))).await.unwrap();
    log.note(event(project, sandbox, AuditAction::exec_ended(spec.id.as_str(), &exit, None, None))).await.unwrap();
    begin.elapsed()
}

/// A line of the same length, without a log around it.
fn bare_flush(place: &Path) -> Duration {
    let mut file = File::create(place.join("bare")).unwrap();
    let mut times: Vec<Duration> = (0..EACH)
        .map(|_| {
            let begin = Instant::now();
            file.write_all(&[b'x'; 400]).unwrap();
            file.sync_data().unwrap();
            begin.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

#[tokio::main]
async fn main() {
    let place = tempfile::tempdir_in(std::env::var_os("BELLJAR_BENCH_DIR").unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into())).unwrap();
    println!("a line written and flushed, without a log: p50 {:?}", bare_flush(place.path()));
    let log = Arc::new(AuditLog::open(place.path()).unwrap());
    for at_once in [1, 16, 64] {
        let begin = Instant::now();
        let workers = (0..at_once).map(|_| {
            let log = Arc::clone(&log);
            tokio::spawn(async move {
                let (project, sandbox) = ("default".parse().unwrap(), SandboxId::random());
                let mut times = Vec::with_capacity(EACH);
                for _ in 0..EACH {
                    times.push(execution(&log, &project, &sandbox).await);
                }
                times
            })
        });
        let mut times = Vec::new();
        for worker in workers.collect::<Vec<_>>() {
            times.extend(worker.await.unwrap());
        }
        times.sort();
        let each = begin.elapsed() / u32::try_from(times.len()).unwrap();
        println!(
            "{at_once} at once: waits p50 {:?}, p99 {:?}; {each:?} of the log's time each",
            times[times.len() / 2],
            times[times.len() * 99 / 100]
        );
    }
}
