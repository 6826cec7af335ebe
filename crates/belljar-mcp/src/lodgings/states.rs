//! Forks, checkpoints and ends. A checkpoint is a snapshot whose name says so: the server knows which there are, and nothing is remembered here.

use std::time::Duration;

use belljar_client::{ClientError, ListSandboxes, ListSnapshots, NewForks, NewSnapshot, SandboxView, SnapshotView};
use belljar_types::{SandboxId, escape_untrusted};
use futures_util::future::join_all;

use super::{Lodgings, Visit};
use crate::error::ToolError;
use crate::place::{FORK_OF, Place};

/// Checkpoints of an agent that was killed are kept no longer.
const CHECKPOINT_LIFE: Duration = Duration::from_secs(24 * 3600);
/// What the name of a checkpoint's snapshot begins with. Snapshots of other names are somebody else's.
const CHECKPOINT: &str = "mcp-";
/// Of more forks or checkpoints than this, the newest are told.
const MOST_TOLD: u32 = 100;

impl Lodgings {
    /// A copy of a sandbox as it is now, which may be used as it is.
    pub(crate) async fn fork(&self, sandbox: &SandboxId) -> Result<SandboxView, ToolError> {
        let metadata = Some(self.place.mark(FORK_OF).into_iter().collect());
        let lease_seconds = Some(self.place.first_lease().as_secs());
        let request = NewForks { count: 1, all_or_nothing: true, lease_seconds, metadata, ..NewForks::default() };
        let forks = self.once(|| self.client.fork_sandbox(sandbox, &request)).await;
        let forks = forks.map_err(|error| self.failed(sandbox, "make a fork", error))?;
        let nothing = || ClientError::Answer { url: self.client.url().to_owned(), detail: "a fork that is no sandbox".to_owned() };
        let fork = forks.into_iter().find_map(|fork| fork.sandbox).ok_or_else(nothing).map_err(ToolError::asked("make a fork"))?;
        self.visit(fork.id.clone(), Visit::First).await?;
        Ok(fork)
    }

    /// Keeps the state of a sandbox under a name; a name that was used before now means this state.
    pub(crate) async fn checkpoint(&self, sandbox: &SandboxId, name: Option<String>) -> Result<(String, SnapshotView), ToolError> {
        let failed = |error| self.failed(sandbox, "take a checkpoint", error);
        let before = self.checkpoints(sandbox).await.map_err(failed)?;
        let is_free = |name: &String| before.iter().all(|(known, _)| known != name);
        let name = name.or_else(|| (1..).map(|number| format!("checkpoint-{number}")).find(is_free)).unwrap_or_default();
        let request = NewSnapshot {
            name: Some(format!("{CHECKPOINT}{name}")),
            expires_in_seconds: Some(CHECKPOINT_LIFE.as_secs()),
            ..NewSnapshot::default()
        };
        let taken = self.once(|| self.client.take_snapshot(sandbox, &request)).await.map_err(failed)?;
        self.remove(before.into_iter().filter(|(known, _)| *known == name)).await;
        Ok((name, taken))
    }

    /// Puts a sandbox back to one of its checkpoints.
    pub(crate) async fn restore(&self, sandbox: &SandboxId, name: &str) -> Result<(), ToolError> {
        let failed = |error| self.failed(sandbox, "restore a checkpoint", error);
        let all = self.checkpoints(sandbox).await.map_err(failed)?;
        let Some((_, checkpoint)) = all.iter().find(|(known, _)| known == name) else {
            let known: Vec<_> = all.into_iter().map(|(known, _)| known).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(ToolError::NoCheckpoint { name: escape_untrusted(name.as_bytes()), known });
        };
        self.once(|| self.client.roll_back(sandbox, &checkpoint.id)).await.map(drop).map_err(failed)
    }

    /// The checkpoints of a sandbox by name, newest first.
    async fn checkpoints(&self, sandbox: &SandboxId) -> Result<Vec<(String, SnapshotView)>, ClientError> {
        let which = ListSnapshots { sandbox: Some(sandbox.clone()), limit: Some(MOST_TOLD), ..ListSnapshots::default() };
        let page = self.patiently(|| self.client.snapshots(&which)).await?;
        let name_of = |snapshot: &SnapshotView| Some(snapshot.name.as_deref()?.strip_prefix(CHECKPOINT)?.to_owned());
        Ok(page.snapshots.into_iter().filter_map(|snapshot| Some((name_of(&snapshot)?, snapshot))).collect())
    }

    async fn remove(&self, checkpoints: impl Iterator<Item = (String, SnapshotView)>) {
        // They expire by themselves, whatever becomes of this.
        join_all(checkpoints.map(|(_, snapshot)| async move { self.client.remove_snapshot(&snapshot.id).await.is_ok() })).await;
    }

    /// The names of other sandboxes here and of this one's checkpoints.
    pub(crate) async fn beside(&self, sandbox: &SandboxId) -> Result<(Vec<String>, Vec<String>), ClientError> {
        let others = match &self.place {
            Place::Named(name, _) => {
                let metadata = vec![(FORK_OF.to_owned(), name.as_str().to_owned())];
                let which = ListSandboxes { metadata, limit: Some(MOST_TOLD), ..ListSandboxes::default() };
                let page = self.patiently(|| self.client.sandboxes(&which)).await?;
                page.sandboxes.into_iter().filter(|other| !other.state.has_ended()).map(|other| other.id).collect()
            }
            Place::Given(_) | Place::Made(_) => {
                self.lock().iter().filter(|(_, holding)| holding.is_some()).map(|(id, _)| id.clone()).collect::<Vec<_>>()
            }
        };
        let others = others.iter().filter(|other| *other != sandbox).map(ToString::to_string).collect();
        let checkpoints = self.checkpoints(sandbox).await?;
        Ok((others, checkpoints.into_iter().map(|(name, _)| name).collect()))
    }

    /// Ends a sandbox and drops its checkpoints, to which nothing can go back any more.
    pub(crate) async fn end(&self, sandbox: &SandboxId) -> Result<(), ToolError> {
        if matches!(&self.place, Place::Given(given) if given == sandbox) {
            return Err(ToolError::NotOurs);
        }
        let failed = |error| self.failed(sandbox, "end it", error);
        let checkpoints = self.checkpoints(sandbox).await.map_err(failed)?;
        self.patiently(|| self.client.kill_sandbox(sandbox)).await.map_err(failed)?;
        self.lock().remove(sandbox);
        self.remove(checkpoints.into_iter()).await;
        Ok(())
    }

    /// Ends all that a connection made. What was given stays, as does a computer with a name.
    pub(crate) async fn leave(&self) {
        if !matches!(self.place, Place::Named(..)) {
            let held: Vec<_> = self.lock().keys().cloned().collect();
            // Whatever cannot be ended now ends with its lease. One that has ended is ended again, for what is left of it.
            join_all(held.iter().map(|id| self.end(id))).await;
        }
        self.lock().clear();
    }
}
