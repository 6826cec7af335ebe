//! [`Runtime`]: an engine that makes sandboxes.
//!
//! ## What every engine must hold to
//! * **Findable.** Whatever belongs to a sandbox (processes, mounts, namespaces, interfaces, cgroups, files) is found from its id alone.
//!   [`Runtime::destroy`] works after any crash, on any remains, and twice.
//! * **Dead or whole.** [`Runtime::create`] returns after the agent has answered, or leaves nothing behind. If the caller dies half-way,
//!   [`Runtime::inventory`] shows the remains and `destroy` removes them.
//! * **Outlives its maker.** A sandbox does not die with the process that made it; [`Runtime::adopt`] takes it over.
//! * **No silent downgrade.** A limit or rule that cannot be enforced is an error of `create`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use belljar_types::{
    EndReason, EngineReport, Execution, ExecutionId, Invalid, IsolationClass, LayerDigest, PauseKind, SandboxId, SandboxSpec, SnapshotId,
    SnapshotKind, Usage,
};

use crate::{Capabilities, Guest, GuestError};

/// How a sandbox was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// It runs and can be adopted.
    Running(Execution),
    /// Its processes are frozen in memory.
    Frozen(Execution),
    /// It is on disk alone, and [`Runtime::resume`] brings it back.
    Paused {
        /// Whether its memory was kept: then its processes go on, otherwise it boots anew on its files.
        memory: bool,
    },
    /// It ended by itself; its remains wait for [`Runtime::destroy`].
    Ended(EndReason),
    /// Its making was cut short; its remains wait for [`Runtime::destroy`].
    HalfMade,
}

/// A sandbox of this engine that exists on this host in some way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Whose it is.
    pub id: SandboxId,
    /// In what state.
    pub presence: Presence,
}

/// A snapshot that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotRecord {
    /// Its name.
    pub id: SnapshotId,
    /// What it holds.
    pub kind: SnapshotKind,
    /// The sandbox it was taken of, which may be gone.
    pub source: SandboxId,
    /// The layers below its files, lowest first; the agent's is not among them.
    pub layers: Vec<LayerDigest>,
    /// What its sandbox had written to disk by then, and the memory image.
    pub bytes: u64,
    /// How long its sandbox stood still for it.
    pub stood_still: Duration,
    /// When it was taken.
    pub taken_at: SystemTime,
}

/// Why an engine did not do what it was asked. The variant says what was being attempted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The request itself is wrong; nothing was changed.
    #[error("refused the request")]
    Invalid(#[from] Invalid),
    /// This engine cannot do that, on this host or at all.
    #[error("the {class} class does not support {verb}: {reason}")]
    Unsupported {
        /// The engine.
        class: IsolationClass,
        /// What was asked.
        verb: &'static str,
        /// Why not, and what to do instead.
        reason: String,
    },
    /// The engine does not work on this host.
    #[error("the {class} class does not work on this host: {reason}")]
    Unavailable {
        /// The engine.
        class: IsolationClass,
        /// The check that failed and its fix.
        reason: String,
    },
    /// There is no such sandbox.
    #[error("sandbox {id} is not here")]
    NotFound {
        /// The id asked for.
        id: SandboxId,
    },
    /// There is one already.
    #[error("sandbox {id} exists already")]
    Exists {
        /// The id asked for.
        id: SandboxId,
    },
    /// There is no such snapshot.
    #[error("snapshot {id} is not here")]
    NoSnapshot {
        /// The id asked for.
        id: SnapshotId,
    },
    /// There is one already.
    #[error("snapshot {id} exists already")]
    SnapshotExists {
        /// The id asked for.
        id: SnapshotId,
    },
    /// Another run of the sandbox is current.
    #[error("sandbox {id} is not in the state this needs: {state}")]
    WrongState {
        /// The sandbox.
        id: SandboxId,
        /// What state it is in.
        state: String,
    },
    /// The host has no more of something: slots, disk, memory.
    #[error("the host is out of {resource}")]
    Exhausted {
        /// What ran out.
        resource: &'static str,
    },
    /// The sandbox ended while it was being made or asked.
    #[error("sandbox {id} ended: {reason}{}{detail}", if detail.is_empty() { "" } else { "; " })]
    Ended {
        /// The sandbox.
        id: SandboxId,
        /// Why.
        reason: EndReason,
        /// What the engine said last, made safe to print.
        detail: String,
    },
    /// The host's kernel or the engine's program failed.
    #[error("{operation} for sandbox {id}")]
    Host {
        /// What was being attempted.
        operation: &'static str,
        /// For whom.
        id: SandboxId,
        /// What went wrong.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The agent did not answer as it must.
    #[error("talk to the agent of sandbox {id}")]
    Agent {
        /// The sandbox.
        id: SandboxId,
        /// What went wrong.
        #[source]
        source: GuestError,
    },
}

/// An engine.
#[async_trait]
pub trait Runtime: Send + Sync {
    /// The class it provides.
    fn class(&self) -> IsolationClass;

    /// What it can do here.
    fn capabilities(&self) -> Capabilities;

    /// Tries itself out on this host and reports. Costs time; call it at start and for `doctor`.
    async fn probe(&self) -> EngineReport;

    /// Makes a sandbox and waits until its agent answers. On error nothing is left.
    async fn create(&self, spec: &SandboxSpec) -> Result<Execution, RuntimeError>;

    /// The agent of a running sandbox, whoever made it. Cheap; connections are kept by the engine.
    async fn guest(&self, id: &SandboxId) -> Result<Arc<dyn Guest>, RuntimeError>;

    /// Takes over a sandbox that another process made. Its agent has answered when this returns.
    async fn adopt(&self, id: &SandboxId) -> Result<Execution, RuntimeError>;

    /// Everything of this engine on this host, whole or not.
    async fn inventory(&self) -> Result<Vec<Found>, RuntimeError>;

    /// Ends a sandbox and removes every trace of it. Does nothing, successfully, if there is none.
    async fn destroy(&self, id: &SandboxId) -> Result<(), RuntimeError>;

    /// Waits until the sandbox is no longer running and says why. Does not remove it. A sandbox that is paused meanwhile did not end: then
    /// this fails with [`RuntimeError::WrongState`].
    async fn ended(&self, id: &SandboxId) -> Result<EndReason, RuntimeError>;

    /// Ends its processes and leaves the rest, so that [`Runtime::usage`] tells what it used in all. Only [`Runtime::destroy`] may follow.
    async fn halt(&self, id: &SandboxId) -> Result<(), RuntimeError>;

    /// What it used so far, counted by the host: of processor time all since its making, of everything else what it has now. A paused sandbox
    /// has its disk and nothing else.
    async fn usage(&self, id: &SandboxId) -> Result<Usage, RuntimeError>;

    /// Stops it. With [`PauseKind::Memory`] its processes go on where they stood when it is resumed; where they are meanwhile is told by
    /// [`Capabilities::pause`]. With [`PauseKind::Standby`] that is the host's memory, whatever else the engine can do. With
    /// [`PauseKind::Filesystem`] they end and its files stay.
    ///
    /// Returns when it uses no processor any more. If it fails, the sandbox runs as before.
    async fn pause(&self, id: &SandboxId, kind: PauseKind) -> Result<(), RuntimeError>;

    /// Lets a paused sandbox go on. What was on disk comes back as a new run with this id, a new secret and a new address; connections are cut,
    /// processes and their output are where they were. What stood still in memory is the same run, and says so in the answer.
    ///
    /// If it fails, the sandbox is paused as before.
    async fn resume(&self, id: &SandboxId, execution: &ExecutionId) -> Result<Execution, RuntimeError>;

    /// The files that a sandbox has written over its layers, as a tree in overlay form with the sandbox's own user ids. It must be paused without
    /// memory, so that nobody writes any more. The tree is only to be read, by whoever makes a layer of it, and goes with the sandbox.
    async fn written(&self, id: &SandboxId) -> Result<PathBuf, RuntimeError>;

    /// Keeps its state under a name, of a running or a paused sandbox. A running one goes on; it stands still only as long as the answer says.
    async fn snapshot(&self, id: &SandboxId, snapshot: &SnapshotId, kind: SnapshotKind) -> Result<SnapshotRecord, RuntimeError>;

    /// Makes a new sandbox from a snapshot, or fails leaving nothing. `spec.layers` is ignored: the snapshot has them. One with memory goes on
    /// where the snapshot's sandbox stood, with that one's environment; one without boots anew on its files.
    async fn fork(&self, snapshot: &SnapshotId, spec: &SandboxSpec) -> Result<Execution, RuntimeError>;

    /// Puts a sandbox, running or paused, back to one of its own snapshots; it then runs. If it fails half-way, it is paused in the state of the
    /// snapshot; before that nothing was changed.
    async fn rollback(&self, id: &SandboxId, snapshot: &SnapshotId, execution: &ExecutionId) -> Result<Execution, RuntimeError>;

    /// Removes a snapshot. Does nothing, successfully, if there is none. Sandboxes made from it live on.
    async fn remove_snapshot(&self, snapshot: &SnapshotId) -> Result<(), RuntimeError>;

    /// All whole snapshots of this engine on this host.
    async fn snapshots(&self) -> Result<Vec<SnapshotRecord>, RuntimeError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_with_the_last_words_if_there_were_any() {
        let id: SandboxId = "abcdefgh01234567".parse().unwrap();
        let ended =
            |detail: &str| RuntimeError::Ended { id: id.clone(), reason: EndReason::OutOfMemory, detail: detail.to_owned() }.to_string();
        assert_eq!(ended(""), "sandbox abcdefgh01234567 ended: it needed more memory than it is allowed");
        assert_eq!(ended("cannot map"), "sandbox abcdefgh01234567 ended: it needed more memory than it is allowed; cannot map");
    }
}
