//! A sandbox as the service knows it: whose it is, what state it is in, how long it may live, and how it ended.
//!
//! ```text
//!              ┌────────── failed ◄─────────┐
//!              │ (its making was undone)    │ (its engine lost it)
//!  creating ───┴──► running ──► pausing ──► paused ──► resuming ──► running
//!                      │                      │
//!                      └──────► stopping ◄────┘
//!                                  │
//!                                  ▼
//!                               stopped
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{
    Beginning, EndReason, ExecutionId, Invalid, IsolationClass, KeyId, Origin, ProjectId, SandboxId, SandboxSpec, SnapshotId, SnapshotKind,
    TemplateName,
};

/// A moment, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The host's clock.
    pub fn now() -> Self {
        SystemTime::now().into()
    }

    /// Later by `duration`; the end of time if there is no such moment.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }

    /// How long until `later`; zero if it has passed.
    pub fn until(self, later: Self) -> Duration {
        Duration::from_millis(later.0.saturating_sub(self.0))
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        Self(time.duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// One start of the server. Writes of an older epoch are refused, so that a server that was thought dead changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

/// Where a sandbox is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxState {
    /// Being made; its agent has not answered yet.
    Creating,
    /// Its agent answers.
    Running,
    /// Being stopped where it stands.
    Pausing,
    /// Stands still, to go on later.
    Paused,
    /// Being set going again.
    Resuming,
    /// Being ended and removed.
    Stopping,
    /// Gone, as was asked or allowed for.
    Stopped,
    /// Gone, because something went wrong.
    Failed,
}

impl SandboxState {
    /// All of them, in the order of a life.
    pub const ALL: [Self; 8] =
        [Self::Creating, Self::Running, Self::Pausing, Self::Paused, Self::Resuming, Self::Stopping, Self::Stopped, Self::Failed];

    /// The word used in requests, answers and the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Running => "running",
            Self::Pausing => "pausing",
            Self::Paused => "paused",
            Self::Resuming => "resuming",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        }
    }

    /// Whether nothing can follow.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Stopped | Self::Failed)
    }

    /// Whether it is on its way from one state to another and will be there soon.
    pub fn is_passing(self) -> bool {
        matches!(self, Self::Creating | Self::Pausing | Self::Resuming)
    }

    /// Whether the state machine has an arrow from here to `next`.
    pub fn may_become(self, next: Self) -> bool {
        match self {
            Self::Creating => matches!(next, Self::Running | Self::Stopping | Self::Failed),
            Self::Running => matches!(next, Self::Pausing | Self::Stopping | Self::Stopped | Self::Failed),
            Self::Pausing => matches!(next, Self::Paused | Self::Running | Self::Stopping | Self::Failed),
            Self::Paused => matches!(next, Self::Resuming | Self::Stopping | Self::Failed),
            Self::Resuming => matches!(next, Self::Running | Self::Paused | Self::Stopping | Self::Failed),
            Self::Stopping => matches!(next, Self::Stopped | Self::Failed),
            Self::Stopped | Self::Failed => false,
        }
    }
}

impl fmt::Display for SandboxState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SandboxState {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::ALL
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or_else(|| Invalid::new("state", "creating, running, pausing, paused, resuming, stopping, stopped or failed", text))
    }
}

/// Why a sandbox ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndCause {
    /// Somebody asked for it.
    Requested,
    /// Its lease ran out.
    LeaseExpired,
    /// Nobody used it for its idle time-out.
    Idle,
    /// It reached its limit of wall time.
    WallTime,
    /// It needed more memory than it is allowed.
    OutOfMemory,
    /// It stopped by itself.
    Exited,
    /// It could not be made.
    NotMade,
    /// A budget was used up.
    Budget,
    /// It was gone when the server came back: the machine was restarted, or somebody removed it.
    Lost,
}

impl EndCause {
    /// The word for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::LeaseExpired => "lease-expired",
            Self::Idle => "idle",
            Self::WallTime => "wall-time",
            Self::OutOfMemory => "out-of-memory",
            Self::Exited => "exited",
            Self::NotMade => "not-made",
            Self::Budget => "budget",
            Self::Lost => "lost",
        }
    }
}

impl From<EndReason> for EndCause {
    fn from(reason: EndReason) -> Self {
        match reason {
            EndReason::Killed => Self::Requested,
            EndReason::OutOfMemory => Self::OutOfMemory,
            EndReason::Exited => Self::Exited,
        }
    }
}

/// What happens when a sandbox's lease runs out or nobody uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnTimeout {
    /// It ends.
    #[default]
    Kill,
    /// It is paused, with its memory where its engine can keep that, and waits to be resumed or killed.
    Pause,
    /// It is paused with its files alone, and begins anew on them when it is resumed.
    PauseFiles,
}

/// How a sandbox is to stand still.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PauseKind {
    /// Its processes end; it boots anew on its files.
    Filesystem,
    /// Its processes are kept, and the host's memory is freed of them where their class can do that.
    Memory,
    /// Its processes are kept in the host's memory, to go on within milliseconds.
    Standby,
}

impl From<SnapshotKind> for PauseKind {
    fn from(keep: SnapshotKind) -> Self {
        match keep {
            SnapshotKind::Filesystem => Self::Filesystem,
            SnapshotKind::Memory => Self::Memory,
        }
    }
}

/// How a sandbox stands still.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PausedMemory {
    /// Its processes ended; it boots anew on its files.
    Lost,
    /// Its processes stand still in the host's memory.
    Resident,
    /// Its processes are on disk and the host's memory is free.
    OnDisk,
}

/// A sandbox's pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Pause {
    /// Since when; its lease does not run meanwhile.
    pub since: Timestamp,
    /// What became of its memory.
    pub memory: PausedMemory,
}

/// The end of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SandboxEnd {
    /// Why.
    pub cause: EndCause,
    /// More about it, for people; safe to print.
    pub detail: String,
    /// When.
    pub at: Timestamp,
}

/// A sandbox, as stored.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Sandbox {
    /// Its name for life.
    pub id: SandboxId,
    /// Whose it is.
    pub project: ProjectId,
    /// The key it was asked for with: what it uses counts for that one too. Unset for one from before this was written down.
    #[serde(default)]
    pub asked_with: Option<KeyId>,
    /// Where it is in its life.
    pub state: SandboxState,
    /// What isolates it.
    pub class: IsolationClass,
    /// Why this class, for people.
    pub class_reason: String,
    /// What it was made from.
    pub template: TemplateName,
    /// What its engine was asked to make; its execution is the current one.
    pub spec: SandboxSpec,
    /// The caller's own words about it.
    pub metadata: BTreeMap<String, String>,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When its agent first answered.
    pub started_at: Option<Timestamp>,
    /// When its lease runs out; never when unset.
    pub expires_at: Option<Timestamp>,
    /// When the lease was last set: its length is the difference, whatever the clock did since.
    pub leased_at: Timestamp,
    /// How long nobody may use it before it ends; for ever when unset.
    pub idle_timeout: Option<Duration>,
    /// What happens when its lease runs out or nobody uses it.
    #[serde(default)]
    pub on_timeout: OnTimeout,
    /// Whether using it while it is paused resumes it.
    #[serde(default)]
    pub auto_resume: bool,
    /// Its pause, from the moment it is asked for until it runs again.
    #[serde(default)]
    pub pause: Option<Pause>,
    /// How long it was only on disk in all: that is no wall time.
    #[serde(default)]
    pub stood_still: Duration,
    /// Whom it is a copy of, if it is one.
    #[serde(default)]
    pub origin: Option<Origin>,
    /// What it began with on its host, if that was not its template alone.
    #[serde(default)]
    pub begins_with: Option<Beginning>,
    /// The snapshot that it last took, was rolled back to, or began with.
    #[serde(default)]
    pub last_snapshot: Option<SnapshotId>,
    /// How it ended or is ending.
    pub end: Option<SandboxEnd>,
}

impl Sandbox {
    /// The current run.
    pub fn execution(&self) -> &ExecutionId {
        &self.spec.execution
    }

    /// The moment at which its lease stands: now, or while it is paused that of the pause, or of the lease it was given since.
    pub fn lease_clock(&self, now: Timestamp) -> Timestamp {
        self.pause.map_or(now, |pause| pause.since.max(self.leased_at))
    }

    /// The sandbox that everything it is related to began with; itself, if it is no copy.
    pub fn root(&self) -> &SandboxId {
        self.origin.as_ref().map_or(&self.id, |origin| &origin.root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_follows_the_end_and_every_other_state_can_be_stopped() {
        for state in SandboxState::ALL {
            assert_eq!(state.as_str().parse::<SandboxState>().unwrap(), state);
            let can_go_on = SandboxState::ALL.into_iter().any(|next| state.may_become(next));
            assert_eq!(can_go_on, !state.has_ended(), "{state}");
            assert!(state.has_ended() || state == SandboxState::Stopping || state.may_become(SandboxState::Stopping), "{state}");
        }
    }

    #[test]
    fn a_moment_that_has_passed_is_no_time_away() {
        assert_eq!(Timestamp(1000).until(Timestamp(400)), Duration::ZERO);
        assert_eq!(Timestamp(1000).plus(Duration::from_secs(1)), Timestamp(2000));
        assert_eq!(Timestamp(5).plus(Duration::MAX), Timestamp(u64::MAX));
    }
}
