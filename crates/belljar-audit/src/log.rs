//! [`AuditLog`]: the log as the service sees it.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use belljar_ports::{Audit, AuditError, AuditPage, AuditQuery, AuditVerdict, Checkpoint};
use belljar_types::{AuditEvent, ProjectId, chain};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::error;

use crate::key::SigningKey;
use crate::project_log::ProjectLog;
use crate::writer::{Ends, Job, Writer};
use crate::{head, read, verify};

/// How many events may wait for the disk; whoever comes then waits too.
const QUEUE: usize = 4096;

/// A writer that is just ending gets this long to write what it was given.
const LOCK_TRIES: u32 = 500;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// The logs of all projects, in one directory.
pub struct AuditLog {
    root: PathBuf,
    key: Arc<SigningKey>,
    jobs: mpsc::Sender<Job>,
    ends: watch::Receiver<Ends>,
}

impl AuditLog {
    /// Opens the logs below a directory, with the key that signs them. What a killed server wrote and did not sign for is signed for now: whoever
    /// follows the log is told of it although nothing new happens. Any other log is taken up with its first event.
    pub fn open(root: &Path) -> Result<Self, AuditError> {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(root);
        made.map_err(|source| AuditError::Disk { operation: "make the directory of", path: root.to_owned(), source })?;
        let lock = alone(root)?;
        let key = Arc::new(SigningKey::open_or_make(&root.join("signing-key"))?);
        for project in head::perhaps_behind(root)? {
            if let Err(failure) = ProjectLog::open(root, &project, &key) {
                error!(%project, error = chain(&failure), "an audit log cannot be taken up; nothing is written to it until somebody has looked");
            }
        }
        let (jobs, waiting) = mpsc::channel(QUEUE);
        let (sender, ends) = watch::channel(Ends::default());
        let writer = Writer::new(root.to_owned(), Arc::clone(&key), sender);
        let failed = |source| AuditError::Disk { operation: "start the writer of", path: root.to_owned(), source };
        // A thread of its own, which the disk may hold up; its runtime is there for the clock alone.
        let clock = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(failed)?;
        let work = move || {
            clock.block_on(writer.work(waiting));
            drop(lock);
        };
        std::thread::Builder::new().name("audit".to_owned()).spawn(work).map_err(failed)?;
        Ok(Self { root: root.to_owned(), key, jobs, ends })
    }

    /// The public half of the signing key, in hexadecimal.
    pub fn public_key(&self) -> &str {
        self.key.public()
    }

    async fn hand_over(&self, event: AuditEvent, reply: Option<oneshot::Sender<Result<u64, AuditError>>>) -> Result<(), AuditError> {
        self.jobs.send(Job { event, reply }).await.map_err(|_| AuditError::Closed)
    }

    /// Reads files without holding up whoever else is served.
    async fn look<T: Send + 'static>(
        &self,
        project: &ProjectId,
        look: impl FnOnce(&Path, &ProjectId) -> Result<T, AuditError> + Send + 'static,
    ) -> Result<T, AuditError> {
        let (directory, project) = (self.root.join(project.as_str()), project.clone());
        tokio::task::spawn_blocking(move || look(&directory, &project)).await.map_err(|_| AuditError::Closed)?
    }
}

/// The lock that keeps a second writer away: two would each go on from an end that is no longer the end.
fn alone(root: &Path) -> Result<File, AuditError> {
    let path = root.join("lock");
    let failed = |source| AuditError::Disk { operation: "lock", path: path.clone(), source };
    let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(failed)?;
    let mut patience = LOCK_TRIES;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) if patience > 0 => std::thread::sleep(LOCK_PAUSE),
            Err(error) => return Err(failed(error.into())),
        }
        patience -= 1;
    }
}

#[async_trait]
impl Audit for AuditLog {
    async fn record(&self, event: AuditEvent) -> Result<u64, AuditError> {
        let (reply, answer) = oneshot::channel();
        self.hand_over(event, Some(reply)).await?;
        answer.await.map_err(|_| AuditError::Closed)?
    }

    async fn note(&self, event: AuditEvent) -> Result<(), AuditError> {
        self.hand_over(event, None).await
    }

    async fn read(&self, project: &ProjectId, query: &AuditQuery) -> Result<AuditPage, AuditError> {
        let query = query.clone();
        self.look(project, move |directory, _| read::page(directory, &query)).await
    }

    async fn wait(&self, project: &ProjectId, beyond: u64, at_most: Duration) -> Result<u64, AuditError> {
        let on_disk = self.checkpoint(project).await?.map_or(0, |checkpoint| checkpoint.sequence);
        if on_disk > beyond {
            return Ok(on_disk);
        }
        let mut ends = self.ends.clone();
        let farther = ends.wait_for(|ends| ends.get(project).is_some_and(|end| *end > beyond));
        match tokio::time::timeout(at_most, farther).await {
            Ok(Ok(ends)) => Ok(ends.get(project).copied().unwrap_or(on_disk)),
            Ok(Err(_closed)) => Err(AuditError::Closed),
            Err(_nothing_came) => Ok(on_disk),
        }
    }

    async fn ends(&self, known: &BTreeMap<ProjectId, u64>) -> Result<BTreeMap<ProjectId, u64>, AuditError> {
        let mut changes = self.ends.clone();
        if known.is_empty() {
            let root = self.root.clone();
            let found = tokio::task::spawn_blocking(move || head::all(&root)).await.map_err(|_| AuditError::Closed)??;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        let is_new = |ends: &Ends| ends.iter().any(|(project, end)| known.get(project).is_none_or(|known| end > known));
        let changed = changes.wait_for(is_new).await.map_err(|_closed| AuditError::Closed)?;
        let mut ends = known.clone();
        ends.extend(changed.iter().map(|(project, end)| (project.clone(), *end)));
        Ok(ends)
    }

    async fn checkpoint(&self, project: &ProjectId) -> Result<Option<Checkpoint>, AuditError> {
        let damaged = |project: &ProjectId, detail| AuditError::Damaged { project: project.clone(), detail };
        self.look(project, move |directory, project| head::read(directory)?.map_err(|detail| damaged(project, detail))).await
    }

    async fn verify(&self, project: &ProjectId) -> Result<AuditVerdict, AuditError> {
        let public = self.key.public().to_owned();
        self.look(project, move |directory, project| verify::directory(directory, project, &public)).await
    }
}
