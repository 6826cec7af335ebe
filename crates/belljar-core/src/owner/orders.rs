//! What an owner is asked to do, and what it does then.

use std::sync::Arc;
use std::time::Duration;

use belljar_types::{EndCause, PauseKind, Sandbox, Snapshot};
use tokio::sync::oneshot;

use crate::CoreError;
use crate::keeping::Taking;
use crate::request::SandboxChange;

/// Answers go back through these.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, CoreError>>;

/// What an owner is asked to do.
pub(crate) enum Order {
    /// End it.
    Kill(Reply<Arc<Sandbox>>),
    /// Change it.
    Change(SandboxChange, Reply<Arc<Sandbox>>),
    /// Stop it where it stands.
    Pause(PauseKind, Reply<Arc<Sandbox>>),
    /// Let it go on, with a new lease if one is given.
    Resume(Option<Duration>, Reply<Arc<Sandbox>>),
    /// Keep its state.
    Snapshot(Taking, Reply<Snapshot>),
    /// Put it back to one of its snapshots.
    RollBack(Box<Snapshot>, Reply<Arc<Sandbox>>),
    /// Write down what it used until now.
    ReadMeter(oneshot::Sender<()>),
}

/// What came of a request to make a sandbox.
pub(crate) enum Birth {
    /// It runs.
    Made(Arc<Sandbox>),
    /// The same request was made before, for this sandbox.
    Before(Arc<Sandbox>),
}

impl Birth {
    /// The sandbox, whenever it was made.
    pub(crate) fn into_sandbox(self) -> Arc<Sandbox> {
        match self {
            Self::Made(sandbox) | Self::Before(sandbox) => sandbox,
        }
    }
}

/// What an owner does after something has happened.
pub(crate) enum Next {
    /// Goes on, in whatever state the sandbox is.
    Again,
    /// Ends it.
    End(EndCause, String, Option<Reply<Arc<Sandbox>>>),
    /// Leaves it alone: the service is gone.
    Gone,
}

pub(crate) fn killed(reply: Reply<Arc<Sandbox>>) -> Next {
    Next::End(EndCause::Requested, "it was killed on request".to_owned(), Some(reply))
}

pub(crate) fn because(cause: EndCause, sandbox: &Sandbox) -> String {
    match cause {
        EndCause::Idle => format!("nobody used it for {} s", sandbox.idle_timeout.unwrap_or_default().as_secs()),
        EndCause::WallTime => format!("it reached its limit of {} s", sandbox.spec.limits.wall_time.unwrap_or_default().as_secs()),
        _ => "its lease ran out".to_owned(),
    }
}
