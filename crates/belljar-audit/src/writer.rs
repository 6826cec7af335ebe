//! The one writer: a thread that takes all events which wait, writes them with one sync per project, and then answers for all of them.
//!
//! While the disk is busy with one group the next one gathers, so that the cost of a sync is shared by however many come at once. Events that
//! nobody waits for are written at once, which is enough for `kill -9`, and synced with the next one that somebody waits for, or a moment
//! later: an execution costs one sync, not two. A log that could not be written is closed and opened anew for the next event: what is true is
//! what is on the disk, not what is remembered of it.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use belljar_ports::AuditError;
use belljar_types::{AuditEvent, ProjectId};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::error;

use crate::key::SigningKey;
use crate::project_log::ProjectLog;

/// Most events in one group.
const GROUP: usize = 1024;

/// How long events that nobody waits for may stay unsynced; a loss of power takes no more than this of them.
const PATIENCE: Duration = Duration::from_millis(20);

/// An event on its way, and who waits for it.
pub(crate) struct Job {
    pub(crate) event: AuditEvent,
    pub(crate) reply: Option<oneshot::Sender<Result<u64, AuditError>>>,
}

/// How far each log goes, for whoever follows it.
pub(crate) type Ends = HashMap<ProjectId, u64>;

pub(crate) struct Writer {
    root: PathBuf,
    key: Arc<SigningKey>,
    ends: watch::Sender<Ends>,
    logs: HashMap<ProjectId, ProjectLog>,
    /// Logs that were written to and not synced, and when that must be done.
    unsettled: HashSet<ProjectId>,
    deadline: Option<Instant>,
}

impl Writer {
    pub(crate) fn new(root: PathBuf, key: Arc<SigningKey>, ends: watch::Sender<Ends>) -> Self {
        Self { root, key, ends, logs: HashMap::new(), unsettled: HashSet::new(), deadline: None }
    }

    /// Works until nobody can send any more.
    pub(crate) async fn work(mut self, mut jobs: mpsc::Receiver<Job>) {
        let mut group = Vec::with_capacity(GROUP);
        loop {
            let more = jobs.recv_many(&mut group, GROUP);
            let received = match self.deadline {
                None => more.await,
                Some(deadline) => match tokio::time::timeout_at(deadline.into(), more).await {
                    Ok(received) => received,
                    Err(_nothing_came) => {
                        self.settle_all();
                        continue;
                    }
                },
            };
            if received == 0 {
                return self.settle_all();
            }
            self.take(&mut group);
            if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                self.settle_all();
            }
        }
    }

    fn take(&mut self, group: &mut Vec<Job>) {
        let mut by_project: Vec<(ProjectId, Vec<Job>)> = Vec::new();
        for job in group.drain(..) {
            match by_project.iter_mut().find(|(project, _)| *project == job.event.project) {
                Some((_, jobs)) => jobs.push(job),
                None => by_project.push((job.event.project.clone(), vec![job])),
            }
        }
        for (project, jobs) in by_project {
            self.write(&project, jobs);
        }
    }

    fn write(&mut self, project: &ProjectId, jobs: Vec<Job>) {
        let (events, replies): (Vec<_>, Vec<_>) = jobs.into_iter().map(|job| (job.event, job.reply)).unzip();
        let somebody_waits = replies.iter().any(Option::is_some);
        let written = self.append(project, events).and_then(|first| {
            if somebody_waits {
                self.settle(project)?;
            } else {
                self.unsettled.insert(project.clone());
                self.deadline.get_or_insert_with(|| Instant::now() + PATIENCE);
            }
            Ok(first)
        });
        if let Err(failure) = &written {
            self.give_up(project, failure);
        }
        for (index, reply) in (0..).zip(replies) {
            if let Some(reply) = reply {
                let _gone = reply.send(written.as_ref().map(|first| first + index).map_err(again));
            }
        }
    }

    /// Writes events and says which number the first one got.
    fn append(&mut self, project: &ProjectId, events: Vec<AuditEvent>) -> Result<u64, AuditError> {
        let log = match self.logs.entry(project.clone()) {
            std::collections::hash_map::Entry::Occupied(log) => log.into_mut(),
            std::collections::hash_map::Entry::Vacant(place) => place.insert(ProjectLog::open(&self.root, project, &self.key)?),
        };
        let first = log.sequence() + 1;
        log.append(&self.key, events)?;
        Ok(first)
    }

    fn settle(&mut self, project: &ProjectId) -> Result<(), AuditError> {
        self.unsettled.remove(project);
        if let Some(log) = self.logs.get(project) {
            log.settle(&self.key)?;
            let end = log.sequence();
            self.ends.send_if_modified(|ends| ends.insert(project.clone(), end) != Some(end));
        }
        Ok(())
    }

    fn settle_all(&mut self) {
        self.deadline = None;
        for project in std::mem::take(&mut self.unsettled) {
            if let Err(failure) = self.settle(&project) {
                self.give_up(&project, &failure);
            }
        }
    }

    fn give_up(&mut self, project: &ProjectId, failure: &AuditError) {
        self.logs.remove(project);
        self.unsettled.remove(project);
        error!(%project, error = belljar_types::chain(failure), "events could not be written to the audit log");
    }
}

/// The same failure for everybody who waited.
fn again(failure: &AuditError) -> AuditError {
    match failure {
        AuditError::Disk { operation, path, source } => AuditError::Disk { operation, path: path.clone(), source: same(source) },
        AuditError::Damaged { project, detail } => AuditError::Damaged { project: project.clone(), detail: detail.clone() },
        AuditError::Key { path, reason } => AuditError::Key { path: path.clone(), reason },
        AuditError::Encode(source) => AuditError::Encode(source.to_string().into()),
        _ => AuditError::Closed,
    }
}

fn same(error: &std::io::Error) -> std::io::Error {
    error.raw_os_error().map_or_else(|| std::io::Error::new(error.kind(), error.to_string()), std::io::Error::from_raw_os_error)
}
