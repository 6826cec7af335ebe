//! The one writer: a thread that takes all events which wait, writes them with one sync per project, and then answers for all of them.
//!
//! While the disk is busy with one group the next one gathers, so that the cost of a sync is shared by however many come at once. A log that
//! could not be written is closed and opened anew for the next event: what is true is what is on the disk, not what is remembered of it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use belljar_ports::{AuditError, Checkpoint};
use belljar_types::{AuditEvent, ProjectId};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::error;

use crate::key::SigningKey;
use crate::project_log::ProjectLog;

/// Most events in one group.
const GROUP: usize = 1024;

/// An event on its way, and who waits for it.
pub(crate) struct Job {
    pub(crate) event: AuditEvent,
    pub(crate) reply: Option<oneshot::Sender<Result<u64, AuditError>>>,
}

/// How far each log goes, for whoever follows it.
pub(crate) type Ends = HashMap<ProjectId, u64>;

pub(crate) struct Writer {
    pub(crate) root: PathBuf,
    pub(crate) key: Arc<SigningKey>,
    pub(crate) ends: watch::Sender<Ends>,
    pub(crate) logs: HashMap<ProjectId, ProjectLog>,
}

impl Writer {
    /// Works until nobody can send any more.
    pub(crate) fn work(mut self, mut jobs: mpsc::Receiver<Job>) {
        let mut group = Vec::with_capacity(GROUP);
        while jobs.blocking_recv_many(&mut group, GROUP) > 0 {
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
    }

    fn write(&mut self, project: &ProjectId, jobs: Vec<Job>) {
        let (events, replies): (Vec<_>, Vec<_>) = jobs.into_iter().map(|job| (job.event, job.reply)).unzip();
        match self.append(project, events) {
            Ok((first, checkpoint)) => {
                self.ends.send_if_modified(|ends| ends.insert(project.clone(), checkpoint.sequence) != Some(checkpoint.sequence));
                for (sequence, reply) in (first..).zip(replies) {
                    if let Some(reply) = reply {
                        let _gone = reply.send(Ok(sequence));
                    }
                }
            }
            Err(failure) => {
                self.logs.remove(project);
                error!(%project, error = belljar_types::chain(&failure), "events could not be written to the audit log");
                for reply in replies.into_iter().flatten() {
                    let _gone = reply.send(Err(again(&failure)));
                }
            }
        }
    }

    fn append(&mut self, project: &ProjectId, events: Vec<AuditEvent>) -> Result<(u64, Checkpoint), AuditError> {
        let log = match self.logs.entry(project.clone()) {
            std::collections::hash_map::Entry::Occupied(log) => log.into_mut(),
            std::collections::hash_map::Entry::Vacant(place) => place.insert(ProjectLog::open(&self.root, project, &self.key)?),
        };
        let first = log.sequence() + 1;
        Ok((first, log.append(&self.key, events)?))
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
