//! The follower of one sink: waits for the log to grow, carries what is new, and keeps how far it came.

use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use belljar_ports::{Audit, AuditQuery};
use belljar_types::{ProjectId, chain};
use tracing::{info, warn};

use crate::marks::Marks;
use crate::sink::{Batch, Sink, SinkError, client};

/// Most events in one batch.
const BATCH: usize = 500;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Begins to carry the log to these sinks, for as long as the runtime lives. Their marks are in `directory`.
pub fn follow(log: &Arc<dyn Audit>, sinks: Vec<Sink>, directory: &Path) -> Result<(), SinkError> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|source| SinkError::Mark { path: directory.to_owned(), source })?;
    let http = client().map_err(SinkError::Post)?;
    for sink in sinks {
        let marks = Marks::open(directory.join(format!("{}.json", sink.name)))?;
        tokio::spawn(Follower { log: Arc::clone(log), http: http.clone(), sink, marks, complained: false }.work());
    }
    Ok(())
}

struct Follower {
    log: Arc<dyn Audit>,
    http: reqwest::Client,
    sink: Sink,
    marks: Marks,
    complained: bool,
}

impl Follower {
    async fn work(mut self) {
        let mut known = BTreeMap::new();
        // Ends with the log: when that is closed nothing more will come.
        while let Ok(ends) = self.log.ends(&known).await {
            for (project, end) in &ends {
                self.catch_up(project, *end).await;
            }
            known = ends;
        }
    }

    async fn catch_up(&mut self, project: &ProjectId, end: u64) {
        let mut pause = FIRST_PAUSE;
        while self.marks.of(project) < end {
            match self.carry(project).await {
                Ok(()) => {
                    pause = FIRST_PAUSE;
                    if std::mem::take(&mut self.complained) {
                        info!(sink = self.sink.name, "the audit log is carried on again");
                    }
                }
                Err(failure) => {
                    if !std::mem::replace(&mut self.complained, true) {
                        warn!(
                            sink = self.sink.name,
                            error = chain(&failure),
                            "could not carry the audit log on; trying again until it is taken"
                        );
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// Carries the next events of a project, and then moves the mark.
    async fn carry(&mut self, project: &ProjectId) -> Result<(), SinkError> {
        let query = AuditQuery { after: self.marks.of(project), limit: BATCH, ..AuditQuery::default() };
        let page = self.log.read(project, &query).await?;
        if !page.records.is_empty() {
            self.sink.carry(&self.http, &Batch { project, records: &page.records }).await?;
        }
        self.marks.set(project, page.looked_until.max(query.after + u64::from(page.records.is_empty())))
    }
}
