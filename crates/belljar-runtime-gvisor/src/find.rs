//! Finding sandboxes again, whoever made them: the record says that one should be there, the processes of its sentry and its gofer whether it is.
//!
//! A sentry whose gofer was killed may live on without a single file (seen after a restore), so the end of either is the end of the sandbox.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use belljar_host::{Record, RecordState};
use belljar_linux::cgroup::Cgroup;
use belljar_linux::pidfd;
use belljar_ports::{Found, Guest, Presence, RuntimeError};
use belljar_types::{EndReason, Execution, IsolationClass, SandboxId};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::errors::EngineError;
use crate::launch::Files;
use crate::live::Live;
use crate::runsc::Runsc;
use crate::runtime::{Inner, blocking};

impl Inner {
    /// What we keep for a sandbox's current run; made anew if another process made the sandbox.
    pub(crate) async fn live(&self, id: &SandboxId) -> Result<Arc<Live>, RuntimeError> {
        if let Some(live) = self.lives().get(id) {
            return Ok(live.clone());
        }
        let record = self.known(id, "find the agent").await?;
        require_whole(&record)?;
        self.release_if_held(&record).await?;
        if let Presence::Ended(reason) = self.presence(&record).await? {
            return Err(RuntimeError::Ended { id: id.clone(), reason, detail: self.files(id).last_words() });
        }
        let never_rests = self.runsc().await.is_ok_and(Runsc::never_rests);
        let live = Arc::new(Live::new(&self.host, &record, self.files(&record.id), never_rests));
        Ok(self.lives().entry(id.clone()).or_insert(live).clone())
    }

    pub(crate) async fn take_over(&self, id: &SandboxId) -> Result<Execution, RuntimeError> {
        let record = self.known(id, "adopt").await?;
        require_whole(&record)?;
        if let Presence::Ended(reason) = self.presence(&record).await? {
            return Err(RuntimeError::Ended { id: id.clone(), reason, detail: self.files(id).last_words() });
        }
        let live = self.live(id).await?;
        live.guest.hello().await.map_err(|source| RuntimeError::Agent { id: id.clone(), source })?;
        Ok(execution(&record))
    }

    pub(crate) async fn find_all(&self) -> Result<Vec<Found>, RuntimeError> {
        let records = self.host.records(IsolationClass::Gvisor).await;
        let records = records.map_err(|source| RuntimeError::Unavailable {
            class: IsolationClass::Gvisor,
            reason: format!("its sandboxes cannot be listed: {source}"),
        })?;
        let mut found = Vec::with_capacity(records.len());
        for record in records {
            if record.state == RecordState::Making && self.makings.is_making(&record.id) {
                continue;
            }
            let presence = self.presence(&record).await?;
            found.push(Found { id: record.id, presence });
        }
        Ok(found)
    }

    pub(crate) async fn presence(&self, record: &Record) -> Result<Presence, RuntimeError> {
        if record.state == RecordState::Making {
            return Ok(Presence::HalfMade);
        }
        if let RecordState::Paused | RecordState::Resuming = record.state {
            let memory = record.paused.as_ref().is_some_and(|paused| paused.identity.is_some());
            return Ok(Presence::Paused { memory });
        }
        let (cgroup, files) = (self.host.cgroup(&record.id), self.files(&record.id));
        let live = self.lives().get(&record.id).cloned();
        let look = blocking(move || match (processes(&files, &cgroup)?, live) {
            (Some(_), _) => Ok(Ok(cgroup.is_frozen()?)),
            (None, Some(live)) => Ok(Err(live.end_reason())),
            // Nobody saw it end; the kernel's count is all there is to go by.
            // A group that is being removed meanwhile has no count any more.
            (None, None) if cgroup.oom_kills().unwrap_or(0) > 0 => Ok(Err(EndReason::OutOfMemory)),
            (None, None) => Ok(Err(EndReason::Exited)),
        });
        Ok(match look.await.map_err(|error| error.during("look for", &record.id))? {
            Err(reason) => Presence::Ended(reason),
            Ok(true) => Presence::Frozen(execution(record)),
            Ok(false) => Presence::Running(execution(record)),
        })
    }

    /// Whether what ran of it is gone, although its record says that it runs.
    pub(crate) async fn is_gone(&self, id: &SandboxId) -> bool {
        let (files, cgroup) = (self.files(id), self.host.cgroup(id));
        blocking(move || Ok(processes(&files, &cgroup)?.is_none())).await.unwrap_or(false)
    }

    pub(crate) async fn wait_for_end(&self, id: &SandboxId) -> Result<EndReason, RuntimeError> {
        const OPERATION: &str = "wait for the end";
        let live = match self.live(id).await {
            Err(RuntimeError::Ended { reason, .. }) => return Ok(reason),
            other => other?,
        };
        let (files, cgroup) = (self.files(id), self.host.cgroup(id));
        let at = files.pid.clone();
        let found = blocking(move || processes(&files, &cgroup)).await.map_err(|error| error.during(OPERATION, id))?;
        if let Some(Processes { sentry, gofer }) = found {
            let gofer = async {
                match gofer {
                    Some(gofer) => end_of(gofer).await,
                    None => std::future::pending().await,
                }
            };
            let ended = tokio::select! {
                ended = end_of(sentry) => ended,
                ended = gofer => ended,
            };
            ended.map_err(|source| EngineError::Sentry { path: at, source }.during(OPERATION, id))?;
        }
        if let Ok(record) = self.known(id, OPERATION).await {
            require_whole(&record)?;
        }
        Ok(live.end_reason())
    }
}

/// What a sandbox does not live without.
struct Processes {
    sentry: OwnedFd,
    /// None if runsc does not say which one it is.
    gofer: Option<OwnedFd>,
}

/// The sandbox's processes, if all of them run. A number may have been given to another process since; that one is not in our group.
fn processes(files: &Files, cgroup: &Cgroup) -> Result<Option<Processes>, EngineError> {
    let failed = |source| EngineError::Sentry { path: files.pid.clone(), source };
    let pid = match sentry_pid(files) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(failed)?,
    };
    let known = gofer_pid(files);
    let (sentry, gofer) = (pidfd::open(pid), known.map(pidfd::open));
    Ok(match (sentry, gofer) {
        (Ok(sentry), None) if is_member(cgroup, pid) => Some(Processes { sentry, gofer: None }),
        (Ok(sentry), Some(Ok(gofer))) if is_member(cgroup, pid) && known.is_some_and(|pid| is_member(cgroup, pid)) => {
            Some(Processes { sentry, gofer: Some(gofer) })
        }
        _ => None,
    })
}

/// Whether the process with this number is one of the sandbox's.
pub(crate) fn is_member(cgroup: &Cgroup, pid: u32) -> bool {
    let members = std::fs::read_to_string(cgroup.path().join("cgroup.procs")).unwrap_or_default();
    members.lines().any(|member| member == pid.to_string())
}

/// The gofer's process number, from what runsc wrote down about the sandbox; it may be about to write it anew.
pub(crate) fn gofer_pid(files: &Files) -> Option<u32> {
    let told: serde_json::Value = serde_json::from_slice(&std::fs::read(&files.told).ok()?).ok()?;
    told.get("goferPid")?.as_u64().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0)
}

/// The sentry's process number as runsc wrote it down.
pub(crate) fn sentry_pid(files: &Files) -> io::Result<u32> {
    std::fs::read_to_string(&files.pid)?.trim().parse().map_err(|_| io::ErrorKind::InvalidData.into())
}

#[expect(deprecated, reason = "what its unsafe successor asks for holds for every owned descriptor, and unsafe code is for belljar-linux")]
async fn end_of(process: OwnedFd) -> io::Result<()> {
    AsyncFd::with_interest(process, Interest::READABLE)?.readable().await.map(drop)
}

pub(crate) fn execution(record: &Record) -> Execution {
    Execution { sandbox: record.id.clone(), id: record.execution.clone(), class: IsolationClass::Gvisor, started_at: record.started_at }
}

pub(crate) fn require_whole(record: &Record) -> Result<(), RuntimeError> {
    let state = match record.state {
        RecordState::Running => return Ok(()),
        RecordState::Making => "it is being made",
        RecordState::Paused => "it is paused",
        RecordState::Resuming => "it is being resumed",
    };
    Err(RuntimeError::WrongState { id: record.id.clone(), state: state.to_owned() })
}
